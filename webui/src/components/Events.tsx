// What happened lately, the newest first.

import { clockTime } from '../format'
import type { BoxEvent } from '../types'

const SHOWN = 20

/** The text, with the camera's name standing out where it opens the sentence. */
function EventText({ event: { camera, text } }: { event: BoxEvent }) {
  if (!camera || !text.startsWith(camera)) return <>{text}</>
  return <><strong>{camera}</strong>{text.slice(camera.length)}</>
}

export function Events({ events }: { events: readonly BoxEvent[] }) {
  const latest = [...events].sort((a, b) => b.at_ms - a.at_ms).slice(0, SHOWN)
  return (
    // It scrolls where it is long: the keyboard must get there.
    <aside class="events card" aria-labelledby="events-title" data-testid="events" tabIndex={0}>
      <h2 id="events-title">Events</h2>
      {latest.length === 0 && <p class="muted">Nothing has happened yet.</p>}
      <ol>
        {latest.map((event) => (
          <li key={`${event.at_ms} ${event.text}`} class={`event level-${event.level}`}>
            <time dateTime={new Date(event.at_ms).toISOString()}>{clockTime(event.at_ms)}</time>
            <p>
              {event.level !== 'info' && <strong class="level">{event.level}: </strong>}
              <EventText event={event} />
            </p>
          </li>
        ))}
      </ol>
    </aside>
  )
}
