// What this box runs with: its configuration and where it is from, storage, executors, where events go, versions, licences.

import notices from '../ui/notices.module.css'
import styles from './Settings.module.css'

import { useEffect, useState } from 'preact/hooks'

import { ApiError, type Operation, request } from '../api/api'
import type { Answers } from '../api/api-types'
import { ErrorBoundary } from '../ui/ErrorBoundary'
import { ConfigCard } from './ConfigCard'
import { EventsOutCard } from './EventsOutCard'
import { ExecutorsCard } from './ExecutorsCard'
import { LicencesCard } from './LicencesCard'
import { StorageCard } from './StorageCard'
import { VersionsCard } from './VersionsCard'
import type { BoxState } from '../api/types'

const AGAIN_MS = 10_000

export function Settings({ state }: { state: BoxState }) {
  const { answer: config, error } = useAnswer('GET /v1/config')
  const { answer: system, error: systemError } = useAnswer('GET /v1/system', AGAIN_MS)
  const failed = error || systemError
  return (
    <main class={`live-data ${styles.page}`} aria-label="Settings">
      {failed && !(config && system) && <p class={`card ${notices.broken}`} role="alert">The settings cannot be shown: {failed}</p>}
      {!failed && !(config && system) && <p class={notices.opening} aria-busy="true">Loading…</p>}
      {config && system && (
        <>
          <div class={styles.column}>
            <ErrorBoundary what="The storage"><StorageCard storage={system.storage} keys={config.keys} /></ErrorBoundary>
            <ErrorBoundary what="The executors"><ExecutorsCard executors={state.box.executors} memory={state.box.memory} /></ErrorBoundary>
            <ErrorBoundary what="The destinations of events"><EventsOutCard destinations={state.box.destinations} /></ErrorBoundary>
            <ErrorBoundary what="The versions"><VersionsCard system={system} /></ErrorBoundary>
            <ErrorBoundary what="The licences"><LicencesCard packages={system.packages} /></ErrorBoundary>
          </div>
          <ErrorBoundary what="The configuration"><ConfigCard keys={config.keys} /></ErrorBoundary>
        </>
      )}
    </main>
  )
}

/** What the box answers; asked again every `again_ms`, and what was known stays until then. */
function useAnswer<Name extends Operation>(operation: Name, again_ms?: number): { answer: Answers[Name] | null; error: string } {
  const [known, setKnown] = useState<{ answer: Answers[Name] | null; error: string }>({ answer: null, error: '' })
  useEffect(() => {
    const asking = new AbortController()
    const look = () =>
      request(operation, { signal: asking.signal }).then(
        (answer) => setKnown({ answer, error: '' }),
        (error) => error instanceof ApiError && setKnown(({ answer }) => ({ answer, error: error.message })),
      )
    look()
    const timer = again_ms === undefined ? 0 : window.setInterval(look, again_ms)
    return () => {
      asking.abort()
      window.clearInterval(timer)
    }
  }, [operation, again_ms])
  return known
}
