// Model families: how good and how fast their variants are, who uses which, measuring and importing.

import notices from '../ui/notices.module.css'
import styles from './Models.module.css'

import { useCallback, useEffect, useState } from 'preact/hooks'

import { useMay } from '../access/session'
import { usePolled } from '../api/polling'
import { ErrorBoundary } from '../ui/ErrorBoundary'
import { FamilyCard } from './FamilyCard'
import { ImportCard } from './ImportCard'
import { type Job, running } from './jobs'
import { usersOf } from './families'
import { TryPicture } from './TryPicture'
import type { BoxState } from '../api/types'

const POLL_BUSY_MS = 400
const POLL_IDLE_MS = 4_000
const MODELS_PERIOD_MS = 15_000

export function Models({ state }: { state: BoxState }) {
  const admin = useMay('admin')
  const { jobs, refresh } = useJobs()
  const busy = running(jobs)
  const ended = jobs.reduce((newest, { id, state }) => (state === 'running' ? newest : Math.max(newest, id)), 0)
  const [changes, setChanges] = useState(0)
  // The command line changes models as well, so they are asked for even if nothing is known to have changed.
  const { answer: list, error } = usePolled('GET /v1/models', {}, MODELS_PERIOD_MS, `${state.box.ready} ${ended} ${changes}`)
  const users = usersOf(state.cameras)
  const connected = state.cameras.filter((camera) => camera.connected).length
  return (
    <main class={`live-data ${styles.page}`} aria-label="Models">
      {error && !list && <p class={`card ${notices.broken}`} role="alert">The list of models cannot be shown: {error.message}</p>}
      {!list && !error && <p class={notices.opening} aria-busy="true">Loading…</p>}
      {list?.families.length === 0 && <p class={`card ${styles.none}`}>There are none yet: {state.box.ready_reason || 'the box is starting'}.</p>}
      {list?.families.map((family) => (
        <ErrorBoundary key={family.name} what={`The family ${family.name}`}>
          <FamilyCard list={list} family={family} users={users} jobs={jobs} busy={busy} admin={admin} connected={connected} onStarted={refresh} onChanged={() => setChanges((count) => count + 1)} />
        </ErrorBoundary>
      ))}
      {list && list.families.length > 0 && (
        <ErrorBoundary what="The picture">
          <TryPicture list={list} ready={state.box.ready} />
        </ErrorBoundary>
      )}
      {list && (
        <ErrorBoundary what="The import">
          <ImportCard list={list} jobs={jobs} busy={busy} admin={admin} onStarted={refresh} />
        </ErrorBoundary>
      )}
    </main>
  )
}

/** The box's jobs: asked for often while one runs. `refresh` asks at once. */
function useJobs(): { jobs: readonly Job[]; refresh: () => void } {
  const [period_ms, setPeriod] = useState(POLL_IDLE_MS)
  const [asked, setAsked] = useState(0)
  const { answer } = usePolled('GET /v1/jobs', {}, period_ms, String(asked))
  const jobs = answer?.jobs ?? []
  const isBusy = running(jobs) !== null
  useEffect(() => setPeriod(isBusy ? POLL_BUSY_MS : POLL_IDLE_MS), [isBusy])
  return { jobs, refresh: useCallback(() => setAsked((times) => times + 1), []) }
}
