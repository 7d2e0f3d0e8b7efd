# The stream of records through a consumer.
