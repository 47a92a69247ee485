"""Events out: what happens is decided here, and sent to an MQTT broker and to webhooks."""
