"""What participants do together besides talking: who is here, drawing, writing, playing. Pure.

Values on the tags `control`, `whiteboard` and `chat`, and what follows from them. `page/together.js` is the same in
JavaScript. Order of arrival never matters to what is shown: everybody who has received the same values sees the same.
"""
