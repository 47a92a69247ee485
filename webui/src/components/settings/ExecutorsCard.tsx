// Where models run on this box, and why not where one would hope.

import type { Executor } from '../../types'

export function ExecutorsCard({ executors }: { executors: readonly Executor[] }) {
  return (
    <section class="executors card" aria-labelledby="executors-title" data-testid="executors">
      <h2 id="executors-title">Executors</h2>
      {executors.length === 0 && <p class="muted">None yet: the models are being opened.</p>}
      <ul>
        {executors.map(({ id, provider, device, note }) => (
          <li key={id} data-executor={id}>
            <p><strong>{id}</strong> <span class="muted">{device}, {provider.replace(/ExecutionProvider$/, '')}</span></p>
            {note && <p class="note">{note}</p>}
          </li>
        ))}
      </ul>
    </section>
  )
}
