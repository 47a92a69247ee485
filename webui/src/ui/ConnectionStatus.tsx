// Whether this page still hears from the box: a pill in the header, and a bar while it does not.

import styles from './ConnectionStatus.module.css'

import { useEffect, useState } from 'preact/hooks'

import { classes } from './classes'
import type { Connection } from '../api/socket'

const WORDS = { connecting: 'Connecting', live: 'Live', lost: <><span class={styles.roomy}>Connection </span>lost</> } as const

export function ConnectionPill({ connection }: { connection: Connection }) {
  return (
    <p
      class={classes(styles.pill, styles[connection.phase])}
      data-testid="connection"
      data-phase={connection.phase}
      role="status"
      aria-live="polite"
    >
      <span class={classes(styles.dot, connection.phase !== 'live' && 'pulsing')} aria-hidden="true" />
      {WORDS[connection.phase]}
    </p>
  )
}

/** Laid over the page, so that losing the connection moves nothing. */
export function ConnectionBar({ connection, onRetry }: { connection: Connection; onRetry: () => void }) {
  const lost = connection.phase === 'lost'
  const now_ms = useNow(lost)
  if (!lost) return null
  const ago_s = Math.max(0, Math.round((now_ms - connection.since_ms) / 1000))
  const wait_s = connection.retry_at_ms === null ? 0 : Math.ceil((connection.retry_at_ms - now_ms) / 1000)
  return (
    <div class={styles.lostBar}>
      {/* The seconds are for the eye: read aloud, each change would interrupt. */}
      <p aria-hidden="true">
        <strong>Connection to the box lost.</strong> What you see is {ago_s} s old.{' '}
        {wait_s > 0 ? `Trying again in ${wait_s} s.` : 'Trying again…'}
      </p>
      <button type="button" onClick={onRetry} disabled={connection.retry_at_ms === null}>
        Try now
      </button>
    </div>
  )
}

function useNow(active: boolean): number {
  const [now_ms, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!active) return
    setNow(Date.now())
    const timer = window.setInterval(() => setNow(Date.now()), 500)
    return () => window.clearInterval(timer)
  }, [active])
  return now_ms
}
