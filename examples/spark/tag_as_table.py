"""A tag as a table: what it holds, in one line, and results back on a tag. Needs `ringcast[spark]`."""

import ringcast
from ringcast.spark.session import open_session

with ringcast.connect() as session:
    schema = {"type": "object", "properties": {"room": {"type": "string"}, "celsius": {"type": "number"}}}
    publisher = session.publisher("example/rooms", codec="json", schema=schema)
    for sample in range(100):
        publisher.send({"room": ("kitchen", "cellar")[sample % 2], "celsius": 20 + sample / 10})

    spark = open_session()
    table = spark.read.format("ringcast").option("tag", "example/rooms").load()
    means = table.groupBy("value.room").agg({"value.celsius": "avg"}).toDF("room", "celsius")

    means.write.format("ringcast").mode("append").option("tag", "example/means").save()
    for msg in session.tag("example/means").history().since(0):
        print(f"{msg.data['room']}: {msg.data['celsius']:.1f}")
