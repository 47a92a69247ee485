// Where events are sent to: who takes them, what waits, what arrived and what was lost.

import styles from './EventsOutCard.module.css'

import { classes } from '../ui/classes'
import { lost, lostWhy, standing, STANDING_WORD } from './destinations'
import { clockTime, count } from '../ui/format'
import type { Destination } from '../api/types'

const KINDS = { mqtt: 'MQTT', webhook: 'webhook' } as const

export function EventsOutCard({ destinations }: { destinations: readonly Destination[] }) {
  return (
    <section class={`${styles.card} card`} aria-labelledby="events-out-title" data-testid="events-out">
      <h2 id="events-out-title">Events out <span class="muted">since the start</span></h2>
      {destinations.length === 0 && <p class="muted">They go nowhere: neither <code>[mqtt]</code> nor <code>[[webhooks]]</code> is configured.</p>}
      <ul>{destinations.map((each) => <DestinationRow key={`${each.kind} ${each.name}`} to={each} />)}</ul>
    </section>
  )
}

function DestinationRow({ to }: { to: Destination }) {
  const is = standing(to)
  const why = lostWhy(to)
  return (
    <li data-destination={to.name} data-standing={is}>
      <p class={styles.name}>
        <strong>{to.name}</strong> <span class="muted">{KINDS[to.kind]}</span> <span class={classes(styles.standing, styles[is])}>{STANDING_WORD[is]}</span>
      </p>
      <p>
        {count(to.sent)} delivered · {count(to.queued)} waiting · <span class={why ? 'failing' : undefined}>{count(lost(to))} lost{why && ` (${why})`}</span>
      </p>
      {to.last_error && (
        <p class={is === 'down' ? 'failing' : 'muted'}>Last error, {clockTime(to.last_error.at_ms)}: {to.last_error.text}</p>
      )}
    </li>
  )
}
