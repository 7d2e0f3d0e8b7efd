# The way of records into a producer.
