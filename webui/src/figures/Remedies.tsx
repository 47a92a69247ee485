// What a person can do about a reason, with where on the page it is done.

import { type Scope, may, useSession } from '../access/session'
import { hashOf, type Route, routeOf } from '../app/route'
import type { Camera } from '../api/types'
import { type Field, idOf } from '../camera/cameraOverrides'

type Remedy = Camera['remedies'][number]

interface RemediesProps {
  camera: string
  remedies: readonly Remedy[]
  /** What stands before them; left out: by whether who uses the page may change a camera. */
  lead?: string
}

/** "Ask for 2 frames/s, or add an executor." What somebody may not do here is no link. */
export function Remedies({ camera, remedies, lead }: RemediesProps) {
  const session = useSession()
  if (remedies.length === 0) return null
  return (
    <p data-testid="remedies">
      <span class="muted">{lead ?? (may(session, 'operator') ? 'What you can do: ' : 'What would help: ')}</span>
      {remedies.map((remedy, n) => {
        const place = PLACES[remedy.action]
        return (
          <>
            {n > 0 && (n === remedies.length - 1 ? ' or ' : ', ')}
            {place && may(session, place.scope) ? <Link place={place} camera={remedy.camera ?? camera}>{remedy.text}</Link> : <span>{remedy.text}</span>}
          </>
        )
      })}.
    </p>
  )
}

interface Place {
  /** What it takes to do it there. */
  scope: Scope
  /** The setting of the camera; undefined: it is done on the page of models. */
  setting?: Field
}

const PLACES: Readonly<Partial<Record<Remedy['action'], Place>>> = {
  lower_rate: { scope: 'operator', setting: 'rate_hz' },
  lower_accuracy: { scope: 'operator', setting: 'min_accuracy' },
  extend_deadline: { scope: 'operator', setting: 'slo_ms' },
  choose_model: { scope: 'operator', setting: 'family' },
  import_smaller_model: { scope: 'admin' },
  import_better_model: { scope: 'admin' },
}

function Link({ place: { setting }, camera, children }: { place: Place; camera: string; children: string }) {
  const route: Route = setting === undefined ? { page: 'models' } : { page: 'camera', camera, setting }
  return <a href={hashOf(route)} onClick={(event) => route.setting && routeOf(location.hash).camera === camera && toField(route.setting, event)}>{children}</a>
}

/** On the camera's own page the way to a setting is no way to another page. */
function toField(setting: string, event: Event): void {
  const field = document.getElementById(idOf(setting as Field))
  if (!field) return
  event.preventDefault()
  field.focus()
}
