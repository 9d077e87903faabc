"""Record a tag, read the recording with Arrow, and replay it under another name. Needs `ringcast[record]`."""

import tempfile

import ringcast
from ringcast.record.recorder import Recorder
from ringcast.record.recording import Recording
from ringcast.record.replay import AS_FAST_AS_POSSIBLE, Renaming, Replay, open_recording
from ringcast.record.writer import RecordingWriter

with ringcast.connect() as session, tempfile.TemporaryDirectory() as folder:
    publisher = session.publisher("example/climate", codec="json")
    for sample in range(100):
        publisher.send({"celsius": 20 + sample / 10}, event_ns=sample)

    with RecordingWriter(folder) as writer:
        recorder = Recorder(session, ["example/*"], writer, start="earliest")
        recorder.on_progress = lambda progress: recorder.stop() if progress.rows >= 100 else None
        recorder.run()

    recording = Recording(folder)
    batch = next(recording.batches(recording.commits[0]))
    print(f"{recording.rows} messages; the last: {batch['payload'][99].as_py().decode()}")

    sub = session.subscribe("again/**")
    sent = Replay(session, speed=AS_FAST_AS_POSSIBLE, rename=Renaming(prefix="again/")).run(open_recording(folder))
    msg = sub.recv_many(sent, timeout=5)[-1]
    print(f"replayed {sent}; the last: {msg.tag} {msg.data} of {msg.event_ns} ns")
