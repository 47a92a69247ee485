"""Notifications: events are detected here and sent to an MQTT broker and to webhooks."""
