// Model families: how good and how fast their variants are, who uses which, measuring and importing.

import notices from '../components/notices.module.css'
import styles from './Models.module.css'

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

import { ask, ApiError } from '../api'
import { Guard } from '../components/Guard'
import { FamilyCard } from '../components/models/FamilyCard'
import { ImportCard } from '../components/models/ImportCard'
import { type Job, running } from '../jobs'
import { type ModelList, usersOf } from '../models'
import type { ConfigKey } from '../settings'
import type { BoxState } from '../types'

const POLL_BUSY_MS = 400
const POLL_IDLE_MS = 4_000

export function Models({ state }: { state: BoxState }) {
  const admin = useAdmin()
  const { jobs, look } = useJobs()
  const busy = running(jobs)
  const ended = jobs.reduce((newest, { id, state }) => (state === 'running' ? newest : Math.max(newest, id)), 0)
  const { list, error } = useModels(`${state.box.ready} ${ended}`)
  const users = usersOf(state.cameras)
  const connected = state.cameras.filter((camera) => camera.connected).length
  return (
    <main class={`live-data ${styles.page}`} aria-label="Models">
      {error && <p class={`card ${notices.broken}`} role="alert">The list of models cannot be shown: {error}</p>}
      {!list && !error && <p class={notices.opening} aria-busy="true">Loading…</p>}
      {list?.families.length === 0 && <p class={`card ${styles.none}`}>There are none yet: {state.box.ready_reason || 'the box is starting'}.</p>}
      {list?.families.map((family) => (
        <Guard key={family.name} what={`The family ${family.name}`}>
          <FamilyCard list={list} family={family} users={users} jobs={jobs} busy={busy} admin={admin} connected={connected} onStarted={look} />
        </Guard>
      ))}
      {list && (
        <Guard what="The import">
          <ImportCard list={list} jobs={jobs} busy={busy} admin={admin} onStarted={look} />
        </Guard>
      )}
    </main>
  )
}

/** Whether this box lets the page import and measure; null: not known yet. */
function useAdmin(): boolean | null {
  const [admin, setAdmin] = useState<boolean | null>(null)
  useEffect(() => {
    const asking = new AbortController()
    ask<{ keys: ConfigKey[] }>('v1/config', { signal: asking.signal }).then(
      ({ keys }) => setAdmin(keys.some(({ key, value }) => key === 'server.admin' && value === true)),
      () => {},
    )
    return () => asking.abort()
  }, [])
  return admin
}

/** The models, asked for again when `version` changes; what was known stays until the answer. */
function useModels(version: string): { list: ModelList | null; error: string } {
  const [known, setKnown] = useState<{ list: ModelList | null; error: string }>({ list: null, error: '' })
  useEffect(() => {
    const asking = new AbortController()
    ask<ModelList>('v1/models', { signal: asking.signal }).then(
      (list) => setKnown({ list, error: '' }),
      (error) => error instanceof ApiError && setKnown(({ list }) => ({ list, error: list ? '' : error.message })),
    )
    return () => asking.abort()
  }, [version])
  return known
}

/** The box's jobs: asked for often while one runs. `look` asks at once. */
function useJobs(): { jobs: readonly Job[]; look: () => void } {
  const [jobs, setJobs] = useState<readonly Job[]>([])
  const timer = useRef(0)
  const asking = useRef<AbortController | null>(null)
  const look = useCallback(() => {
    window.clearTimeout(timer.current)
    asking.current?.abort()
    const asked = new AbortController()
    asking.current = asked
    ask<{ jobs: Job[] }>('v1/jobs', { signal: asked.signal })
      .then(
        (told) => {
          setJobs(told.jobs)
          return running(told.jobs) ? POLL_BUSY_MS : POLL_IDLE_MS
        },
        () => POLL_IDLE_MS,
      )
      .then((wait_ms) => {
        if (!asked.signal.aborted) timer.current = window.setTimeout(look, wait_ms)
      })
  }, [])
  useEffect(() => {
    look()
    return () => {
      window.clearTimeout(timer.current)
      asking.current?.abort()
    }
  }, [look])
  return { jobs, look }
}
