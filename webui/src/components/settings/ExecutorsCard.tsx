// Where models run on this box, why not where one would hope, and what is in their memory.

import { count, milliseconds, percent } from '../../format'
import { bytes } from '../../settings'
import type { Executor, Memory } from '../../types'

interface ExecutorsProps {
  executors: readonly Executor[]
  memory: readonly Memory[]
}

export function ExecutorsCard({ executors, memory }: ExecutorsProps) {
  return (
    <section class="executors card" aria-labelledby="executors-title" data-testid="executors">
      <h2 id="executors-title">Executors</h2>
      {executors.length === 0 && <p class="muted">None yet: the models are being opened.</p>}
      <ul>
        {executors.map(({ id, provider, device, note }) => {
          const limited = memory.find(({ executor }) => executor === id)
          return (
            <li key={id} data-executor={id}>
              <p><strong>{id}</strong> <span class="muted">{device}, {provider.replace(/ExecutionProvider$/, '')}</span></p>
              {note && <p class="note">{note}</p>}
              {limited && <Residency memory={limited} />}
            </li>
          )
        })}
      </ul>
      {executors.length > 0 && memory.length === 0 && <p class="muted">Every model stays in memory: <code>inference.memory_limit_mb</code> sets no limit.</p>}
    </section>
  )
}

function Residency({ memory }: { memory: Memory }) {
  const { used_bytes, limit_bytes, resident, loading } = memory
  return (
    <div class="residency" data-testid="residency">
      <p>
        <strong data-bytes={used_bytes}>{bytes(used_bytes)}</strong> <span class="muted">of at most {bytes(limit_bytes)} in memory</span>
      </p>
      <div class="meter" aria-hidden="true"><div style={{ width: `${Math.min(1, used_bytes / limit_bytes) * 100}%` }} /></div>
      <p title="Of the variants that a plan newly named, those that were in memory already">
        {memory.hit_ratio === null ? 'No plan has asked for another model yet' : `${percent(memory.hit_ratio)} of ${count(memory.hits + memory.misses)} changes found their model in memory`}
        {memory.switch_ms !== null && `, the others waited ${milliseconds(memory.switch_ms)}`}
      </p>
      <ul class="resident">
        {resident.map(({ weights, size_bytes }) => <li key={weights} data-weights={weights}>{weights} <span class="muted">{bytes(size_bytes)}</span></li>)}
        {loading && <li>{loading} <span class="muted">is being loaded</span></li>}
      </ul>
    </div>
  )
}
