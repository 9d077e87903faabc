"""What happens to sound between microphone and loudspeaker: blocks, silence, buffers, mixing. Pure.

`page/sound.js` is the same in JavaScript, for browsers. Both are checked on the same vectors
(`tests/unit/conference/vectors.json`), sample by sample; so everything here is arithmetic of whole numbers.
"""
