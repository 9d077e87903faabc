"""Variables: many named, typed values behind one tag (LabMap). What their owner holds, and what everybody else does.

`mapping` is what a program sees, `owner` sends, `following` receives and tells, `requests` asks owners.
"""
