// What this box runs with: its configuration and where it is from, storage, executors, where events go, versions, licences.

import notices from '../components/notices.module.css'
import styles from './Settings.module.css'

import { useEffect, useState } from 'preact/hooks'

import { ask, ApiError } from '../api'
import { Guard } from '../components/Guard'
import { ConfigCard } from '../components/settings/ConfigCard'
import { EventsOutCard } from '../components/settings/EventsOutCard'
import { ExecutorsCard } from '../components/settings/ExecutorsCard'
import { LicencesCard } from '../components/settings/LicencesCard'
import { StorageCard } from '../components/settings/StorageCard'
import { VersionsCard } from '../components/settings/VersionsCard'
import type { ConfigKey, System } from '../settings'
import type { BoxState } from '../types'

const AGAIN_MS = 10_000

export function Settings({ state }: { state: BoxState }) {
  const { answer: config, error } = useAnswer<{ keys: ConfigKey[] }>('v1/config')
  const { answer: system, error: systemError } = useAnswer<System>('v1/system', AGAIN_MS)
  const failed = error || systemError
  return (
    <main class={`live-data ${styles.page}`} aria-label="Settings">
      {failed && !(config && system) && <p class={`card ${notices.broken}`} role="alert">The settings cannot be shown: {failed}</p>}
      {!failed && !(config && system) && <p class={notices.opening} aria-busy="true">Loading…</p>}
      {config && system && (
        <>
          <div class={styles.column}>
            <Guard what="The storage"><StorageCard storage={system.storage} keys={config.keys} /></Guard>
            <Guard what="The executors"><ExecutorsCard executors={state.box.executors} memory={state.box.memory} /></Guard>
            <Guard what="The destinations of events"><EventsOutCard destinations={state.box.destinations} /></Guard>
            <Guard what="The versions"><VersionsCard system={system} /></Guard>
            <Guard what="The licences"><LicencesCard packages={system.packages} /></Guard>
          </div>
          <Guard what="The configuration"><ConfigCard keys={config.keys} /></Guard>
        </>
      )}
    </main>
  )
}

/** What a route answers; asked again every `again_ms`, and what was known stays until then. */
function useAnswer<Answer>(route: string, again_ms?: number): { answer: Answer | null; error: string } {
  const [known, setKnown] = useState<{ answer: Answer | null; error: string }>({ answer: null, error: '' })
  useEffect(() => {
    const asking = new AbortController()
    const look = () =>
      ask<Answer>(route, { signal: asking.signal }).then(
        (answer) => setKnown({ answer, error: '' }),
        (error) => error instanceof ApiError && setKnown(({ answer }) => ({ answer, error: error.message })),
      )
    look()
    const timer = again_ms === undefined ? 0 : window.setInterval(look, again_ms)
    return () => {
      asking.abort()
      window.clearInterval(timer)
    }
  }, [route, again_ms])
  return known
}
