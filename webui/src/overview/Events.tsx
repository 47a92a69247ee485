// What happened lately, the newest first.

import styles from './Events.module.css'

import { classes } from '../ui/classes'
import { clockTime } from '../ui/format'
import type { BoxEvent } from '../api/types'

const SHOWN = 20

/** The text, with the camera's name standing out where it opens the sentence. */
function EventText({ event: { camera, text } }: { event: BoxEvent }) {
  if (!camera || !text.startsWith(camera)) return <>{text}</>
  return <><strong>{camera}</strong>{text.slice(camera.length)}</>
}

interface EventsProps {
  events: readonly BoxEvent[]
  /** Added to its own class. */
  class?: string | undefined
}

export function Events({ events, class: added }: EventsProps) {
  const latest = [...events].sort((a, b) => b.at_ms - a.at_ms).slice(0, SHOWN)
  return (
    // It scrolls where it is long: the keyboard must get there.
    <aside class={classes('card', styles.events, added)} aria-labelledby="events-title" data-testid="events" tabIndex={0}>
      <h2 id="events-title">Events</h2>
      {latest.length === 0 && <p class="muted">Nothing has happened yet.</p>}
      <ol>
        {latest.map((event) => (
          <li key={`${event.at_ms} ${event.text}`} class={classes(styles.event, event.level === 'error' && styles.error)}>
            <time dateTime={new Date(event.at_ms).toISOString()}>{clockTime(event.at_ms)}</time>
            <p title={event.text}>
              {event.level !== 'info' && <strong class={styles.level}>{event.level}: </strong>}
              <EventText event={event} />
            </p>
          </li>
        ))}
      </ol>
    </aside>
  )
}
