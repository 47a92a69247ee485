// What happened lately, the newest first.

import styles from './Events.module.css'

import { useState } from 'preact/hooks'

import { Reason } from '../figures/Reason'
import { classes } from '../ui/classes'
import { clockTime } from '../ui/format'
import type { BoxEvent } from '../api/types'

/** At first a few, their first lines; all of them and all of each on demand. */
const FEW = 8
const MOST = 20
/** What fits the first lines of the narrowest place, in letters. */
const SHORT = 80

/** From the state, or from the database, which has each move. */
type Happened = Omit<BoxEvent, 'moves' | 'since_ms'> & Partial<BoxEvent>

/** How often a camera has moved, where that was more than once in a row. */
function Moves({ moves = 0, since_ms = null }: Happened) {
  if (moves < 2 || since_ms === null) return null
  return <span class="muted"> · {moves} moves since {clockTime(since_ms)}</span>
}

/** The text, with the camera's name standing out where it opens the sentence. */
function EventText({ event: { camera, text } }: { event: Happened }) {
  if (!camera || !text.startsWith(camera)) return <Reason text={text} />
  return <><strong>{camera}</strong><Reason text={text.slice(camera.length)} /></>
}

interface EventsProps {
  events: readonly Happened[]
  /** Added to its own class. */
  class?: string | undefined
}

export function Events({ events, class: added }: EventsProps) {
  const [showsAll, setShowsAll] = useState(false)
  const latest = [...events].sort((a, b) => b.at_ms - a.at_ms).slice(0, MOST)
  const shown = showsAll ? latest : latest.slice(0, FEW)
  const hasMore = latest.length > FEW || latest.some(({ text }) => text.length > SHORT)
  return (
    // It scrolls where it is long: the keyboard must get there.
    <aside class={classes('card', styles.events, added)} aria-labelledby="events-title" data-testid="events" tabIndex={0}>
      <h2 id="events-title">Events</h2>
      {latest.length === 0 && <p class="muted">Nothing has happened yet.</p>}
      <ol>
        {shown.map((event) => (
          <li key={`${event.at_ms} ${event.text}`} class={classes(styles.event, event.level === 'error' && styles.error)}>
            <time dateTime={new Date(event.at_ms).toISOString()}>{clockTime(event.at_ms)}</time>
            <p class={showsAll ? undefined : styles.cut}>
              {event.level !== 'info' && <strong class={styles.level}>{event.level}: </strong>}
              <EventText event={event} />
              <Moves {...event} />
            </p>
          </li>
        ))}
      </ol>
      {hasMore && (
        <button type="button" class="quiet" aria-expanded={showsAll} onClick={() => setShowsAll(!showsAll)}>
          {showsAll ? 'Show less' : 'Show more'}
        </button>
      )}
    </aside>
  )
}
