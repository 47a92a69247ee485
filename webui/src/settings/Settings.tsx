// What this box runs with: its configuration and where it is from, storage, executors, where events go, versions, licences.

import notices from '../ui/notices.module.css'
import styles from './Settings.module.css'

import { usePolled } from '../api/polling'
import { ErrorBoundary } from '../ui/ErrorBoundary'
import { ConfigCard } from './ConfigCard'
import { EventsOutCard } from './EventsOutCard'
import { ExecutorsCard } from './ExecutorsCard'
import { LicencesCard } from './LicencesCard'
import { StorageCard } from './StorageCard'
import { VersionsCard } from './VersionsCard'
import type { BoxState } from '../api/types'

/** Another configuration comes with a restart of the box only. */
const CONFIG_PERIOD_MS = 60_000
const SYSTEM_PERIOD_MS = 10_000

export function Settings({ state }: { state: BoxState }) {
  const { answer: config, error } = usePolled('GET /v1/config', {}, CONFIG_PERIOD_MS)
  const { answer: system, error: systemError } = usePolled('GET /v1/system', {}, SYSTEM_PERIOD_MS)
  const failed = (error ?? systemError)?.message
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
