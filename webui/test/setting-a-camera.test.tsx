// @vitest-environment happy-dom
// Settings and zones of a camera, as people of several roles, and several people at once, change them.

import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/preact'
import type { ComponentChild } from 'preact'
import { useState } from 'preact/hooks'
import { afterEach, expect, test, vi } from 'vitest'

import type { Camera as CameraDocument } from '../src/api/api-types'
import { type Scope, SessionContext } from '../src/access/session'
import type { Camera } from '../src/api/types'
import { Camera as CameraPage } from '../src/camera/Camera'
import { Settings } from '../src/camera/Settings'
import { ZoneEditor } from '../src/camera/ZoneEditor'
import type { Kind } from '../src/camera/drawing'
import type { FrameDispatcher } from '../src/live/frameDispatcher'
import type { Point } from '../src/live/zones'
import { documentedState } from './documented'

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

const NONE = {
  slo_ms: null, rate_hz: null, app: null, min_accuracy: null, site: null, pipeline: null, family: null, tracking: null, zones: null, lines: null,
}
const VERSIONS = {
  slo_ms: 's0', rate_hz: 'r0', app: 'a0', min_accuracy: 'm0', site: 'i0', pipeline: 'p0', family: 'p0', tracking: 't0', zones: 'z0', lines: 'z0',
}
const ASKED = { ...NONE, family: null, slo_ms: 300, rate_hz: 10, min_rate_hz: null, width_px: 1280, height_px: 720, later: [] }
const ORIGINS = { slo_ms: 'camera', rate_hz: 'camera', min_accuracy: 'default', app: 'default', site: 'default', pipeline: 'configuration', family: 'default' } as const
const KNOWN: CameraDocument = {
  id: 'gate-2', connected: true, first_seen_ms: 1, last_seen_ms: null, requested: ASKED, origins: ORIGINS, overrides: NONE, versions: VERSIONS, in_force: null, state: null, source: null,
}
const CONFLICT = 'settings of gate-2 were changed meanwhile: slo_ms by Ann; load what is set now, then change it again'

function as(scope: Scope, content: ComponentChild) {
  return <SessionContext.Provider value={{ scope, name: 'Bob', camera: null, may_be_camera: true, logged_in: true, open_to: 'nobody' }}>{content}</SessionContext.Provider>
}

/** The page's part around the forms: it takes what they bring. */
function SettingsOf({ first }: { first: CameraDocument }) {
  const [known, setKnown] = useState(first)
  return <Settings known={known} connected onChanged={setKnown} />
}

/** Answer one request after the other; give what was sent. */
function answering(...answers: Array<[status: number, body: object]>): () => unknown[] {
  const fetch = vi.fn((_route: string, _init: RequestInit) => {
    const [status, body] = answers.shift() ?? [500, {}]
    return Promise.resolve(new Response(JSON.stringify(body), { status }))
  })
  vi.stubGlobal('fetch', fetch)
  return () => fetch.mock.calls.map(([, { method, body }]) => (body === undefined ? method : JSON.parse(String(body))))
}

function type(label: string, value: string): void {
  fireEvent.input(screen.getByLabelText(label), { target: { value } })
}

test('a setting is saved, told of, and undone', async () => {
  const changed = { ...KNOWN, overrides: { ...NONE, slo_ms: 200 }, versions: { ...VERSIONS, slo_ms: 's1' } }
  const sent = answering([200, changed], [200, KNOWN])
  render(as('operator', <SettingsOf first={KNOWN} />))
  const save = screen.getByRole<HTMLButtonElement>('button', { name: 'Save' })
  expect(save.disabled).toBe(true)
  type('Deadline ms', '200')
  fireEvent.click(save)
  await screen.findByText('Saved: it holds from the next frame on.')
  fireEvent.click(screen.getByRole('button', { name: 'Undo' }))
  await screen.findByText('Undone.')
  expect(sent()).toEqual([{ slo_ms: 200, base: { slo_ms: 's0' } }, { slo_ms: null, base: { slo_ms: 's1' } }])
})

test('a pipeline is chosen among those of the box, and not asked for where there are none', async () => {
  const changed = { ...KNOWN, overrides: { ...NONE, pipeline: 'traffic' } }
  const sent = answering([200, changed])
  const { rerender } = render(as('operator', <Settings known={KNOWN} connected onChanged={() => {}} />))
  expect(screen.queryByLabelText('Pipeline')).toBeNull()
  rerender(as('operator', <Settings known={KNOWN} connected pipelines={['traffic', 'yard']} onChanged={() => {}} />))
  const field = screen.getByLabelText<HTMLSelectElement>('Pipeline')
  expect([...field.options].map(({ text }) => text)).toEqual(['none, from the configuration', 'traffic', 'yard'])
  fireEvent.change(field, { target: { value: 'traffic' } })
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  await waitFor(() => expect(sent()).toEqual([{ pipeline: 'traffic', base: { pipeline: 'p0' } }]))
  rerender(as('operator', <Settings known={changed} connected onChanged={() => {}} />))
  expect(screen.getByLabelText<HTMLSelectElement>('Pipeline').value, 'also one that the box no longer has').toBe('traffic')
})

test('a refusal stands at its field', async () => {
  const problem = { title: 'Invalid', detail: 'settings.slo_ms must be a number from 1 to 60000' }
  answering([400, problem])
  render(as('operator', <SettingsOf first={KNOWN} />))
  type('Deadline ms', 'soon')
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  expect((await screen.findByRole('alert')).textContent).toBe('Deadline must be a number from 1 to 60000')
  expect(screen.getByLabelText('Deadline ms').getAttribute('aria-invalid')).toBe('true')
})

test('a refusal of a model that speaks of pipelines stands at the model, and one of a field that is not drawn beside Save', async () => {
  const details = ['settings.family: faces is given features of street: name a pipeline that has it', 'settings.pipeline: there is no pipeline yard']
  answering(...details.map((detail): [number, object] => [400, { title: 'Invalid', detail }]))
  render(as('operator', <Settings known={KNOWN} connected families={['faces', 'street']} onChanged={() => {}} />))
  fireEvent.change(screen.getByLabelText('Model'), { target: { value: 'faces' } })
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  expect((await screen.findByRole('alert')).id).toBe('setting-family-hint')
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  await waitFor(() => expect(screen.getByTestId('saved').textContent).toContain('Pipeline: there is no pipeline yard'))
  expect(screen.queryByRole('alert')).toBeNull()
})

test('who typed before somebody else saved is told, and keeps what was typed', async () => {
  const theirs = { ...KNOWN, overrides: { ...NONE, slo_ms: 400 }, versions: { ...VERSIONS, slo_ms: 's1' } }
  const mine = { ...KNOWN, overrides: { ...NONE, slo_ms: 200 }, versions: { ...VERSIONS, slo_ms: 's2' } }
  const sent = answering([409, { detail: CONFLICT }], [200, theirs], [200, mine])
  const { rerender } = render(as('operator', <Settings known={KNOWN} connected onChanged={() => {}} />))
  type('Deadline ms', '20')
  // The page asks again every few seconds: what was typed began from what was shown before.
  rerender(as('operator', <Settings known={theirs} connected onChanged={() => {}} />))
  type('Deadline ms', '200')
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  expect((await screen.findByTestId('changed-meanwhile')).textContent).toContain(CONFLICT)
  expect(screen.getByLabelText('Deadline ms').getAttribute('aria-invalid')).toBe('false')
  fireEvent.click(screen.getByRole('button', { name: 'Load what is set now' }))
  await screen.findByText('Now Deadline is 400. What you typed is kept: Save puts it in its place.')
  expect(screen.getByLabelText<HTMLInputElement>('Deadline ms').value).toBe('200')
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  await screen.findByText('Saved: it holds from the next frame on.')
  expect(sent()).toEqual([{ slo_ms: 200, base: { slo_ms: 's0' } }, 'GET', { slo_ms: 200, base: { slo_ms: 's1' } }])
})

test('undoing does not undo what somebody else saved meanwhile', async () => {
  const changed = { ...KNOWN, overrides: { ...NONE, slo_ms: 200 }, versions: { ...VERSIONS, slo_ms: 's1' } }
  const theirs = { ...KNOWN, overrides: { ...NONE, slo_ms: 400 }, versions: { ...VERSIONS, slo_ms: 's2' } }
  const sent = answering([200, changed], [409, { detail: CONFLICT }], [200, theirs])
  render(as('operator', <SettingsOf first={KNOWN} />))
  type('Deadline ms', '200')
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  fireEvent.click(await screen.findByRole('button', { name: 'Undo' }))
  fireEvent.click(await screen.findByRole('button', { name: 'Load what is set now' }))
  await screen.findByText('Now Deadline is 400.')
  expect(sent()[1]).toEqual({ slo_ms: null, base: { slo_ms: 's1' } })
  expect(screen.getByLabelText<HTMLInputElement>('Deadline ms').value).toBe('400')
})

test('a viewer sees what is set and is offered nothing that would be refused', () => {
  render(as('viewer', <Settings known={{ ...KNOWN, overrides: { ...NONE, slo_ms: 200 } }} connected onChanged={() => {}} />))
  expect(screen.getByLabelText<HTMLInputElement>('Deadline ms').value).toBe('200')
  expect(screen.getAllByRole<HTMLInputElement>('textbox').every(({ disabled }) => disabled)).toBe(true)
  expect(screen.getAllByRole<HTMLSelectElement>('combobox').every(({ disabled }) => disabled)).toBe(true)
  expect(screen.queryAllByRole('button')).toEqual([])
  expect(screen.getByText('Log in with an operator’s token to change them.')).toBeTruthy()
})

const ZONE = { name: 'yard', points: [[0, 0], [1, 0], [1, 1]] as const, classes: [], min_dwell_s: 0 }
const DRAWN: Point[] = [[0.1, 0.1], [0.9, 0.1], [0.9, 0.9]]

function ZonesOf({ first, kind: began }: { first: CameraDocument; kind: Kind | null }) {
  const [known, setKnown] = useState(first)
  const [{ kind, points }, setDrawn] = useState<{ kind: Kind | null; points: readonly Point[] }>({ kind: began, points: began ? DRAWN : [] })
  const camera = {
    ...(documentedState().cameras[0] as Camera), id: 'gate-2',
    tracking: { tracks: 0, zones: (known.overrides.zones ?? []).map((zone) => ({ ...zone, counts: {} })), lines: [] },
  } as unknown as Camera
  return <ZoneEditor camera={camera} known={known} drawing={{ kind, points, set: (kind, points) => setDrawn({ kind, points }) }} onChanged={setKnown} />
}

test('who draws while somebody else saves a zone is told, and loses neither zone', async () => {
  const theirs = { ...KNOWN, overrides: { ...NONE, zones: [ZONE], lines: [] }, versions: { ...VERSIONS, zones: 'z1', lines: 'z1' } }
  const sent = answering([409, { detail: 'zones and lines by Ann' }], [200, theirs], [200, theirs])
  render(as('operator', <ZonesOf first={KNOWN} kind="zone" />))
  type('Name', 'gate')
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  expect((await screen.findByTestId('changed-meanwhile')).textContent).toContain('zones and lines by Ann')
  fireEvent.click(screen.getByRole('button', { name: 'Load what is set now' }))
  await screen.findByText('Zones and lines are as they are set now. Your drawing is kept: save it again.')
  expect(screen.getByLabelText<HTMLInputElement>('Name').value).toBe('gate')
  fireEvent.click(screen.getByRole('button', { name: 'Save' }))
  await screen.findByText('gate is saved.')
  const mine = { name: 'gate', points: DRAWN, classes: [], min_dwell_s: 0 }
  expect(sent()).toEqual([
    { zones: [mine], lines: [], base: { zones: 'z0' } }, 'GET', { zones: [ZONE, mine], lines: [], base: { zones: 'z1' } },
  ])
})

test('a failure to load what is set now is told, and can be tried again', async () => {
  const theirs = { ...KNOWN, overrides: { ...NONE, zones: [ZONE], lines: [] } }
  answering([409, { detail: 'zones by Ann' }], [503, { detail: 'too busy' }], [200, theirs])
  render(as('operator', <ZonesOf first={theirs} kind={null} />))
  fireEvent.click(screen.getByRole('button', { name: 'Remove zone yard' }))
  fireEvent.click(await screen.findByRole('button', { name: 'Load what is set now' }))
  await waitFor(() => expect(screen.getByTestId('changed-meanwhile').textContent).toContain('too busy'))
  fireEvent.click(screen.getByRole('button', { name: 'Load what is set now' }))
  await screen.findByText('Zones and lines are as they are set now.')
})

test('a viewer sees zones and what they count, and no way to change them', () => {
  render(as('viewer', <ZonesOf first={{ ...KNOWN, overrides: { ...NONE, zones: [ZONE] } }} kind={null} />))
  expect(screen.getByText('yard')).toBeTruthy()
  expect(screen.queryAllByRole('button')).toEqual([])
  expect(screen.getByText('Log in with an operator’s token to draw and remove them.')).toBeTruthy()
})

test.each([
  ['api', 1],
  ['configuration', 0],
] as const)('a camera that the box fetches by its %s can be forgotten as far as the box allows it', async (origin, buttons) => {
  const state = documentedState()
  const [source] = state.sources
  const gone = { ...KNOWN, id: source?.camera ?? '', connected: false }
  vi.stubGlobal('fetch', (address: string) => Promise.resolve(
    address === `v1/cameras/${gone.id}` ? new Response(JSON.stringify(gone)) : new Response('{"detail": "too busy"}', { status: 503 }),
  ))
  const follow = () => () => {}
  const page = { ...state, cameras: [], sources: source ? [{ ...source, origin }] : [] }
  render(as('operator', <CameraPage state={page} dispatcher={{ follow } as unknown as FrameDispatcher} camera={gone.id} range={undefined} />))
  await screen.findByRole('heading', { name: /^Settings/ })
  expect(screen.queryAllByRole('button', { name: 'Forget this camera…' })).toHaveLength(buttons)
})

test('who comes for a setting finds it under the cursor', () => {
  const { rerender } = render(as('operator', <Settings known={KNOWN} connected wanted="rate_hz" onChanged={() => {}} />))
  expect(document.activeElement?.id).toBe('setting-rate_hz')
  rerender(as('operator', <Settings known={KNOWN} connected wanted="slo_ms" onChanged={() => {}} />))
  expect(document.activeElement?.id).toBe('setting-slo_ms')
})
