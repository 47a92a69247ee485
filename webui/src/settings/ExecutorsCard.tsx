// Where models run on this box, why not where one would hope, and what is in their memory.

import styles from './ExecutorsCard.module.css'

import { count, milliseconds, percent } from '../ui/format'
import { bytes } from './configuration'
import type { Executor, Memory } from '../api/types'
import { providerName } from '../ui/names'

interface ExecutorsProps {
  executors: readonly Executor[]
  memory: readonly Memory[]
}

export function ExecutorsCard({ executors, memory }: ExecutorsProps) {
  return (
    <section class={`${styles.executors} card`} aria-labelledby="executors-title" data-testid="executors">
      <h2 id="executors-title">Executors</h2>
      {executors.length === 0 && <p class="muted">None yet: the models are being opened.</p>}
      <ul>
        {executors.map((executor) => {
          const { id, provider, device, note, cores, families, interference } = executor
          const limited = memory.find(({ executor }) => executor === id)
          return (
            <li key={id} data-executor={id}>
              <p><strong>{id}</strong> {device !== '' && <span class="muted">{device}, {providerName(provider)}</span>}</p>
              <p class="muted" data-testid="executor-details">
                {families.length > 0 ? `Runs ${families.join(', ')}` : 'Runs nothing'}
                {cores.length > 0 && `, pinned to ${cores.length > 1 ? 'cores' : 'core'} ${cores.join(', ')}`}
                {interference !== null && interference >= 0.001 && `; each other executor that runs slows it by ${percent(interference)}`}
              </p>
              {note && <p class={styles.note}>{note}</p>}
              <Supervised executor={executor} />
              {limited && <Residency memory={limited} />}
            </li>
          )
        })}
      </ul>
      {executors.length > 0 && memory.length === 0 && <p class="muted">Every model stays in memory: <code>inference.memory_limit_mb</code> sets no limit.</p>}
    </section>
  )
}

const STATES = {
  up: 'is up',
  opening: 'was lost and is being opened again',
  waiting: 'was lost',
  wedged: 'hangs, and is not tried again until a thread of it comes back: restart the box',
}

/** How an executor is, where there is anything to say. */
function Supervised({ executor }: { executor: Executor }) {
  const { provider, state, restarts, retry_s, abandoned_threads, last_error } = executor
  if (state === 'up' && last_error === null) return null
  const times = restarts === 1 ? 'once' : `${count(restarts)} times`
  return (
    <p class={state === 'up' ? 'muted' : styles.note} data-state={state} data-restarts={restarts} data-testid="supervised">
      {`It ${provider === '' ? 'is not there' : STATES[state]}`}{retry_s !== null && `, the next try is in ${Math.ceil(retry_s)} s`}{restarts > 0 && `, it came back ${times}`}.
      {abandoned_threads > 0 && ` Threads that hang: ${count(abandoned_threads)}.`}
      {last_error && ` Last error: ${last_error.text}.`}
    </p>
  )
}

function Residency({ memory }: { memory: Memory }) {
  const { used_bytes, limit_bytes, resident, loading } = memory
  return (
    <div class={styles.residency} data-testid="residency">
      <p>
        <strong data-bytes={used_bytes}>{bytes(used_bytes)}</strong> <span class="muted">of at most {bytes(limit_bytes)} in memory</span>
      </p>
      <div class="meter" aria-hidden="true"><div style={{ width: `${Math.min(1, used_bytes / limit_bytes) * 100}%` }} /></div>
      <p title="Of the variants that a plan newly named, those that were in memory already">
        {memory.hit_ratio === null ? 'No plan has asked for another model yet' : `${percent(memory.hit_ratio)} of ${count(memory.hits + memory.misses)} changes found their model in memory`}
        {memory.switch_ms !== null && `, the others waited ${milliseconds(memory.switch_ms)}`}
      </p>
      <ul class={styles.resident}>
        {resident.map(({ weights, size_bytes }) => <li key={weights} data-weights={weights}>{weights} <span class="muted">{bytes(size_bytes)}</span></li>)}
        {loading && <li>{loading} <span class="muted">is being loaded</span></li>}
      </ul>
    </div>
  )
}
