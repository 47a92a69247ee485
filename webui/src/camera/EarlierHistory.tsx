// Which other boxes of the fleet have a history of a camera: what they have stays there.

import page from './Camera.module.css'

import { usePolled } from '../api/polling'
import { nameOf, pageOf } from '../boxes/boxes'
import { hashOf } from '../app/route'
import type { Answers } from '../api/api-types'

export type HistoryBoxes = Answers['GET /v1/cameras/{id}/history/boxes']

const PERIOD_MS = 60_000

export function EarlierHistory({ camera, inFleet }: { camera: string; inFleet: boolean }) {
  const { answer } = usePolled('GET /v1/cameras/{id}/history/boxes', inFleet ? { path: { id: camera } } : null, PERIOD_MS)
  return answer && <HistoryElsewhere camera={camera} {...answer} />
}

export function HistoryElsewhere({ camera, boxes, unanswered }: HistoryBoxes & { camera: string }) {
  if (boxes.length === 0 && unanswered.length === 0) return null
  return (
    <section class={`card ${page.elsewhere}`} aria-labelledby="elsewhere-title" data-testid="history-elsewhere">
      <h2 id="elsewhere-title">History on other boxes</h2>
      {boxes.length > 0 && (
        <ul>
          {boxes.map((box) => {
            const address = pageOf(box)
            const name = nameOf(box)
            return (
              <li key={box.box}>
                {address === null ? name : <a href={address + hashOf({ page: 'camera', camera })}>{name}</a>}
                <span class="muted"> {time(box.from_ms)} to {time(box.to_ms)}</span>
              </li>
            )
          })}
        </ul>
      )}
      {unanswered.length > 0 && (
        <p class="muted">Not known, because they cannot be asked: {unanswered.map(({ address, reason }) => `${address} (${reason})`).join(', ')}</p>
      )}
    </section>
  )
}

function time(at_ms: number): string {
  return new Date(at_ms).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
}
