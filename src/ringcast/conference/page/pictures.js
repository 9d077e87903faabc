// Camera to frames, and frames to the screen. A frame is a message of the codec `image` (ringcast/codec/images.py): a
// header of 16 bytes, then JPEG or WebP from a canvas, or raw pixels as in the paper.

const HEADER_BYTES = 16;
const MAGIC = 0x8a;
const FORMATS = ["raw", "png", "jpeg", "webp"];
export const WIDTH = 160;
export const HEIGHT = 120;
export const FPS = 10;

export class BadFrame extends Error {}

function header(kind, width, height) {
  const bytes = new Uint8Array(HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set([MAGIC, 1, FORMATS.indexOf(kind), 3]);
  view.setUint32(4, width, true);
  view.setUint32(8, height, true);
  return bytes;
}

export function packRaw(pixels, width, height) {
  const bytes = new Uint8Array(HEADER_BYTES + 3 * width * height);
  bytes.set(header("raw", width, height));
  for (let from = 0, to = HEADER_BYTES; from < pixels.length; from += 4, to += 3) {
    bytes[to] = pixels[from];
    bytes[to + 1] = pixels[from + 1];
    bytes[to + 2] = pixels[from + 2];
  }
  return bytes;
}

export function readUntrusted(bytes) {
  if (bytes.length < HEADER_BYTES || bytes[0] !== MAGIC || bytes[1] !== 1 || bytes[2] >= FORMATS.length) throw new BadFrame("these bytes are not a picture");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [kind, colours, width, height] = [FORMATS[bytes[2]], bytes[3], view.getUint32(4, true), view.getUint32(8, true)];
  if (width < 1 || height < 1 || width * height > 2 ** 24 || colours > 4) throw new BadFrame("the header claims an impossible picture");
  const body = bytes.subarray(HEADER_BYTES);
  if (kind === "raw" && body.length !== width * height * Math.max(1, colours)) throw new BadFrame("there are not as many pixels as the header says");
  return { kind, colours, width, height, body };
}

export class Camera {
  constructor(send) {
    this.send = send;
    this.kind = "jpeg";
    this.frames = 0;
    this.timer = null;
  }

  async start() {
    this.stream = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: 320 }, height: { ideal: 240 } } });
    this.video = document.createElement("video");
    this.video.muted = true;
    this.video.playsInline = true;
    this.video.srcObject = this.stream;
    await this.video.play();
    this.canvas = new OffscreenCanvas(WIDTH, HEIGHT);
    this.drawing = this.canvas.getContext("2d", { willReadFrequently: true });
    this.timer = setInterval(() => this.take(), 1000 / FPS);
  }

  stop() {
    clearInterval(this.timer);
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = this.video = this.timer = null;
  }

  async take() {
    if (this.busy || !this.video || this.video.readyState < 2) return;
    this.busy = true;
    const { kind } = this; // it may be changed while the canvas is encoded
    try {
      this.drawing.drawImage(this.video, 0, 0, WIDTH, HEIGHT);
      let bytes;
      if (kind === "raw") {
        bytes = packRaw(this.drawing.getImageData(0, 0, WIDTH, HEIGHT).data, WIDTH, HEIGHT);
      } else {
        const blob = await this.canvas.convertToBlob({ type: `image/${kind}`, quality: 0.6 });
        const body = new Uint8Array(await blob.arrayBuffer());
        bytes = new Uint8Array(HEADER_BYTES + body.length);
        bytes.set(header(kind, WIDTH, HEIGHT));
        bytes.set(body, HEADER_BYTES);
      }
      this.frames += 1;
      this.send(bytes, Date.now());
    } finally {
      this.busy = false;
    }
  }
}

// One participant's picture.
export class Tile {
  constructor(parent, name) {
    this.figure = document.createElement("figure");
    this.canvas = document.createElement("canvas");
    this.caption = document.createElement("figcaption");
    this.caption.textContent = name;
    this.figure.append(this.canvas, this.caption);
    parent.append(this.figure);
    this.arrivals = [];
    this.frames = 0;
    this.lost = 0;
    this.size = "";
    this.bad = 0;
  }

  async show(bytes, lost) {
    this.lost += lost;
    let frame;
    try {
      frame = readUntrusted(bytes);
      await this.draw(frame);
    } catch {
      this.bad += 1; // a damaged picture is left out, the next one may be better
      return;
    }
    this.frames += 1;
    this.arrivals.push(performance.now());
    this.size = `${frame.width}x${frame.height}`;
  }

  async draw({ kind, colours, width, height, body }) {
    let source;
    if (kind === "raw") {
      source = new ImageData(width, height);
      const step = Math.max(1, colours);
      for (let i = 0; i < width * height; i++) {
        for (let c = 0; c < 3; c++) source.data[4 * i + c] = body[i * step + (step >= 3 ? c : 0)];
        source.data[4 * i + 3] = 255;
      }
    } else {
      source = await createImageBitmap(new Blob([body], { type: `image/${kind}` }));
    }
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    const context = this.canvas.getContext("2d");
    if (kind === "raw") context.putImageData(source, 0, 0);
    else context.drawImage(source, 0, 0, width, height);
  }

  fps() {
    const now = performance.now();
    while (this.arrivals.length && now - this.arrivals[0] > 3000) this.arrivals.shift();
    return this.arrivals.length / 3;
  }

  remove() {
    this.figure.remove();
  }
}
