// What a person can do about a reason, with where on the page it is done.

import { hashOf } from '../app/route'
import type { Camera } from '../api/types'

type Remedy = Camera['remedies'][number]

/** "Ask for 2 frames/s, or add an executor." */
export function Remedies({ camera, remedies, lead = 'What you can do: ' }: { camera: string; remedies: readonly Remedy[]; lead?: string }) {
  if (remedies.length === 0) return null
  return (
    <p data-testid="remedies">
      <span class="muted">{lead}</span>
      {remedies.map((remedy, n) => (
        <>
          {n > 0 && (n === remedies.length - 1 ? ' or ' : ', ')}
          <What {...remedy} at={placeOf(remedy, camera)} />
        </>
      ))}.
    </p>
  )
}

function What({ text, at }: Remedy & { at: string | undefined }) {
  return at === undefined ? <span>{text}</span> : <a href={at}>{text}</a>
}

function placeOf({ action }: Remedy, camera: string): string | undefined {
  switch (action) {
    case 'lower_rate':
    case 'lower_accuracy':
    case 'extend_deadline':
      return hashOf({ page: 'camera', camera })
    case 'import_smaller_model':
    case 'import_better_model':
    case 'choose_model':
      return hashOf({ page: 'models' })
    default:
      return undefined
  }
}
