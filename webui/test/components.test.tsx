// @vitest-environment happy-dom
// Components operated as a person does, by roles and labels.

import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/preact'
import { useState } from 'preact/hooks'
import { afterEach, expect, test, vi } from 'vitest'

import { type Scope, SessionContext } from '../src/access/session'
import { Boxes } from '../src/boxes/Boxes'
import { HistoryElsewhere } from '../src/camera/EarlierHistory'
import { Cascade } from '../src/camera/Cascade'
import { PipelineStages } from '../src/camera/PipelineStages'
import { membersOf } from '../src/scheduler/BatchDetails'
import { Recorder } from '../src/scheduler/Recorder'
import type { BatchRequest } from '../src/scheduler/timeline'
import { Confirm } from '../src/ui/Confirm'
import { ConnectionBar } from '../src/ui/ConnectionStatus'
import { Events } from '../src/overview/Events'
import { Decision } from '../src/figures/Decision'
import { FrameCounts } from '../src/figures/FrameCounts'
import { Remedies } from '../src/figures/Remedies'
import type { BoxEvent, Camera } from '../src/api/types'
import { documentedState } from './documented'
import { ErrorBoundary } from '../src/ui/ErrorBoundary'
import { Lazy } from '../src/ui/Lazy'
import { Tabs } from '../src/ui/Tabs'

afterEach(() => {
  cleanup()
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

const TABS = [{ key: 'a', name: 'One' }, { key: 'b', name: 'Two' }, { key: 'c', name: 'Three' }]

function SomeTabs() {
  const [key, setKey] = useState('a')
  return <Tabs label="Kinds" tabs={TABS} selected={key} onSelect={setKey}>{key}</Tabs>
}

test('arrows go round the tabs, Home and End to the ends, and the panel follows', () => {
  render(<SomeTabs />)
  const press = (key: string) => fireEvent.keyDown(document.activeElement as Element, { key })
  screen.getByRole('tab', { name: 'One' }).focus()
  for (const [key, name, panel] of [['ArrowRight', 'Two', 'b'], ['End', 'Three', 'c'], ['ArrowRight', 'One', 'a'], ['ArrowLeft', 'Three', 'c'], ['Home', 'One', 'a']] as const) {
    press(key)
    expect(document.activeElement?.textContent).toBe(name)
    expect(screen.getByRole('tabpanel').textContent).toBe(panel)
  }
})

test('who is asked back by a button keeps the place: the focus goes to the way out, and back', () => {
  const onConfirm = vi.fn()
  render(<Confirm ask="Remove…" label="Remove gate…" confirm="Remove gate" onConfirm={onConfirm}>Its files go.</Confirm>)
  const first = screen.getByRole('button', { name: 'Remove gate…' })
  first.focus()
  fireEvent.click(first)
  expect(document.body.textContent).toContain('Its files go.')
  expect(document.activeElement?.textContent).toBe('Keep it')
  fireEvent.click(document.activeElement as Element)
  expect(document.activeElement?.getAttribute('aria-label')).toBe('Remove gate…')
  expect(onConfirm).not.toHaveBeenCalled()
  fireEvent.click(document.activeElement as Element)
  fireEvent.click(screen.getByRole('button', { name: 'Remove gate' }))
  expect(onConfirm).toHaveBeenCalledOnce()
  expect(document.activeElement?.getAttribute('aria-label')).toBe('Remove gate…')
})

test('a page that is loaded gets no other page’s properties', async () => {
  const first = async () => ({ name }: { name: string }) => <main>first of {name}</main>
  const second = async () => ({ name }: { name: string }) => <main>second of {name}</main>
  const onShown = vi.fn()
  const { rerender } = render(<Lazy load={first} props={{ name: 'a' }} onShown={onShown} />)
  expect(screen.getByRole('main').getAttribute('aria-busy')).toBe('true')
  await screen.findByText('first of a')
  rerender(<Lazy load={second} props={{ name: 'b' }} onShown={onShown} />)
  expect(screen.queryByText('first of b')).toBeNull()
  await screen.findByText('second of b')
  await waitFor(() => expect(onShown).toHaveBeenCalledTimes(2))
})

test('a part that cannot be drawn says so, is logged, and is tried again', () => {
  vi.useFakeTimers()
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  let isBroken = true
  const Part = () => {
    if (isBroken) throw new Error('no figures')
    return <p>all there</p>
  }
  render(<ErrorBoundary what="The plan"><Part /></ErrorBoundary>)
  expect(screen.getByRole('alert').textContent).toContain('The plan cannot be shown: no figures')
  expect(log.mock.calls[0]?.[0]).toContain('The plan')
  isBroken = false
  act(() => void vi.advanceTimersByTime(2_000))
  expect(screen.getByText('all there')).toBeTruthy()
})

test('a lost connection counts down, and can be tried at once', () => {
  vi.useFakeTimers({ now: 10_000 })
  const onRetry = vi.fn()
  render(<ConnectionBar connection={{ phase: 'lost', since_ms: 9_000, retry_at_ms: 14_000 }} onRetry={onRetry} />)
  act(() => void vi.advanceTimersByTime(2_000))
  expect(screen.getByText(/What you see is 3 s old/).textContent).toContain('Trying again in 2 s.')
  fireEvent.click(screen.getByRole('button', { name: 'Try now' }))
  expect(onRetry).toHaveBeenCalled()
})

test('a pipeline says what came of the objects that its later stages were given', () => {
  const none = { answered: 0, remembered: 0, dropped: {} }
  const stages = [
    { name: 'street', family: 'street', after: [], ...none },
    { name: 'vehicle', family: 'vehicles', after: ['street'], answered: 12, remembered: 1234, dropped: { queue: 2, departed: 1 } },
  ]
  const { rerender } = render(<PipelineStages name="traffic" partial={1} stages={stages} />)
  const rows = screen.getAllByRole('row').map((row) => row.textContent)
  expect(rows).toEqual(['Objectsansweredknowndropped', 'vehicle121,2343'])
  expect(screen.getByText('1 answer lacked a stage for some object.')).toBeTruthy()
  rerender(<PipelineStages name="alone" partial={0} stages={stages.slice(0, 1)} />)
  expect(screen.queryByRole('table')).toBeNull()
})

test('a cascade shows what it sends on, by which threshold, and what that saves', () => {
  const cascade = {
    name: 'gate', small: 'street-256', large: 'street-608', continues: false, threshold: 0.3851, planned: false, expected_share: 0.3, expected_agreement: 0.778, compared: null,
    kept: 60, sent_on: 35, missed: 5, share: 0.4, saving: 0.42,
  }
  const { rerender } = render(<Cascade {...cascade} />)
  const rows = () => screen.getAllByRole('row').map((row) => row.textContent?.replaceAll('\u202f', ' '))
  expect(rows()).toEqual(['sent on40.0 %', 'threshold0.385', 'expected agreement77.8 %', 'saves42.0 %', 'too late for the large model5'])
  rerender(<Cascade {...cascade} planned saving={-0.1} />)
  expect(rows()[1]).toBe('threshold0.385, as planned')
  expect(rows()[3]).toBe('savesnothing')
  rerender(<Cascade {...cascade} compared={{ pictures: 12, expected_loss: 0.2, measured_loss: 0.2345 }} />)
  expect(rows()[3]).toBe('loss of the small model0.234, 0.200 expected')
  rerender(<Cascade {...cascade} continues share={0.25} />)
  expect(screen.getByText('Early exit')).toBeTruthy()
  expect(screen.getByText('end at the exit').closest('tr')?.textContent).toContain('75')
})

test('a batch says how many frames and crops it has', () => {
  const members = (...stages: Array<string | null>) => membersOf({ size: stages.length, requests: stages.map((stage) => ({ stage })) as BatchRequest[] })
  expect(members(null)).toBe('1 frame')
  expect(members('vehicle', 'vehicle')).toBe('2 crops')
  expect(members(null, 'vehicle', null)).toBe('2 frames and 1 crop')
})

const HALL = {
  box: 'hall at http://hall:8787', address: 'http://hall:8787', fingerprint: null, load: 0.4, services: {}, cameras: 3, cameras_max: 64,
  draining: false, ready: true, version: '1.0.0',
}
const YARD = { ...HALL, box: 'yard at http://yard:8787', address: 'http://yard:8787', load: 1.2, draining: true, version: '0.9.0' }

test('the boxes of a fleet stand with what they do, and why others are left out', async () => {
  const fleet = { boxes: [HALL, YARD], left_out: [{ address: 'http://shed:8787', reason: 'no answer' }] }
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(fleet))))
  render(<Boxes inFleet />)
  const [hall, yard] = await screen.findAllByTestId('box')
  expect(hall?.textContent).toContain('hallthis box')
  expect(hall?.textContent).toContain('3 of 64 cameras')
  expect(hall?.dataset.standing).toBe('serving')
  expect(yard?.dataset.standing).toBe('stopping')
  expect(yard?.textContent).toContain('0.9.0, not as this box')
  expect(screen.getAllByRole('link').map((link) => [link.textContent, link.getAttribute('href')])).toEqual([['http://yard:8787', 'http://yard:8787/']])
  expect(screen.getByTestId('left-out').textContent).toContain('http://shed:8787no answer')
  expect(screen.getByTestId('boxes-sums').textContent).toContain('6 of at most 128')
})

test('a camera names the boxes that have its earlier history, and those that may', () => {
  const gone = { address: 'http://shed:8787', reason: 'no answer' }
  const hall = { box: HALL.box, address: HALL.address, from_ms: Date.UTC(2026, 10, 1, 12), to_ms: Date.UTC(2026, 10, 2, 12) }
  render(<HistoryElsewhere camera="gate 1" boxes={[hall]} unanswered={[gone]} />)
  const shown = screen.getByTestId('history-elsewhere')
  expect(screen.getByRole('link', { name: 'hall' }).getAttribute('href')).toBe('http://hall:8787/#/cameras/gate%201')
  expect(shown.textContent).toContain('1 Nov 2026')
  expect(shown.textContent).toContain('http://shed:8787 (no answer)')
  cleanup()
  render(<HistoryElsewhere camera="gate 1" boxes={[]} unanswered={[]} />)
  expect(screen.queryByTestId('history-elsewhere')).toBeNull()
})

test('a box that is alone says so and how it gets company, leads on, and is not asked', () => {
  const fetch = vi.fn()
  vi.stubGlobal('fetch', fetch)
  render(<Boxes inFleet={false} />)
  expect(screen.getByRole('main').textContent).toMatch(/This box is alone.*\[fleet\]/)
  expect(screen.getAllByRole('link').map((link) => link.getAttribute('href'))).toEqual(['#/'])
  expect(fetch).not.toHaveBeenCalled()
})

test('the journal is offered to those who may have it', () => {
  const session = { name: 'Bob', camera: null, may_be_camera: true, logged_in: true, open_to: 'nobody' } as const
  const recorder = (scope: 'viewer' | 'operator') => <SessionContext.Provider value={{ ...session, scope }}><Recorder ready request={null} /></SessionContext.Provider>
  const { rerender } = render(recorder('viewer'))
  expect(screen.queryByTestId('journal')).toBeNull()
  expect(document.body.textContent).toContain('Log in with an operator’s token to download it.')
  rerender(recorder('operator'))
  expect(screen.getByTestId('journal').getAttribute('href')).toBe('v1/journal')
})

test('the newest events show their first lines, all of them and all of each on demand', () => {
  const text = `gate moved from 320 × 192 px to 256 × 160 px: ${'a long reason '.repeat(20)}`
  const events: BoxEvent[] = Array.from({ length: 30 }, (_, at_ms) => ({ at_ms, level: 'info', camera: 'gate', text, moves: 1, since_ms: at_ms }))
  const cut = () => screen.getAllByRole('listitem').filter((item) => item.querySelector('p[class*="cut"]')).length
  const { rerender } = render(<Events events={events} />)
  expect([screen.getAllByRole('listitem').length, cut()]).toEqual([8, 8])
  fireEvent.click(screen.getByRole('button', { name: 'Show more', expanded: false }))
  expect([screen.getAllByRole('listitem').length, cut()]).toEqual([20, 0])
  fireEvent.click(screen.getByRole('button', { name: 'Show less', expanded: true }))
  expect([screen.getAllByRole('listitem').length, cut()]).toEqual([8, 8])
  rerender(<Events events={events.slice(0, 1)} />)
  expect(screen.getByRole('button', { name: 'Show more' })).toBeTruthy()
  rerender(<Events events={[{ at_ms: 1, level: 'info', camera: 'gate', text: 'gate connected from 127.0.0.1', moves: 0, since_ms: null }]} />)
  expect(screen.queryByRole('button')).toBeNull()
})

test('an event that stands for several moves says how many, and since when', () => {
  const moved = { at_ms: 9_000, level: 'info', camera: 'gate', text: 'gate moved to 320 × 192 px: why' } as const
  const { rerender } = render(<Events events={[{ ...moved, moves: 1, since_ms: 9_000 }]} />)
  expect(screen.getByRole('listitem').textContent).not.toContain('since')
  rerender(<Events events={[{ ...moved, moves: 7, since_ms: 1_000 }]} />)
  expect(screen.getByRole('listitem').textContent).toMatch(/why · 7 moves since .*:01$/)
})

test.each<[Scope, string[], string]>([
  ['viewer', [], 'What would help: '],
  ['operator', ['#/cameras/gate?setting=rate_hz'], 'What you can do: '],
  ['admin', ['#/cameras/gate?setting=rate_hz', '#/models'], 'What you can do: '],
])('a remedy leads a %s only to what a token of this scope may do', (scope, links, lead) => {
  const remedies = [
    { action: 'lower_rate', text: 'ask for 2 frames/s', value: 2, camera: null },
    { action: 'import_smaller_model', text: 'import a smaller model', value: null, camera: null },
    { action: 'add_executor', text: 'add an executor', value: null, camera: null },
  ] as const
  const session = { scope, name: 'Bob', camera: null, may_be_camera: true, logged_in: true, open_to: 'nobody' } as const
  render(<SessionContext.Provider value={session}><Remedies camera="gate" remedies={remedies} /></SessionContext.Provider>)
  expect(screen.getByTestId('remedies').textContent).toBe(`${lead}ask for 2 frames/s, import a smaller model or add an executor.`)
  expect(screen.queryAllByRole('link').map((link) => link.getAttribute('href'))).toEqual(links)
})

test('on the page of the camera a remedy leads to the field of its setting, and stays on the page', () => {
  const session = { scope: 'operator', name: 'Bob', camera: null, may_be_camera: true, logged_in: true, open_to: 'nobody' } as const
  const remedies = [
    { action: 'extend_deadline', text: 'allow 400 ms', value: 400, camera: null },
    { action: 'extend_deadline', text: 'allow 8 ms more for answers to door', value: null, camera: 'door' },
  ] as const
  location.hash = '#/cameras/gate'
  render(<SessionContext.Provider value={session}><Remedies camera="gate" remedies={remedies} /><input id="setting-slo_ms" /></SessionContext.Provider>)
  const [own, other] = screen.getAllByRole('link') as [HTMLElement, HTMLElement]
  expect(fireEvent.click(own)).toBe(false)
  expect(document.activeElement?.id).toBe('setting-slo_ms')
  expect(other.getAttribute('href')).toBe('#/cameras/door?setting=slo_ms')
  expect(fireEvent.click(other)).toBe(true)
})

test('best effort is explained where it is said', () => {
  const camera = documentedState().cameras[0] as Camera
  const reason = '128 × 96 px, best effort: four cameras share cpu/0'
  const { rerender } = render(<Decision camera={{ ...camera, advice: { ...camera.advice, reason } as Camera['advice'] }} />)
  expect(screen.getByTestId('best-effort').textContent).toMatch(/^Best effort: the plan makes no promise for its frames/)
  rerender(<Decision camera={camera} />)
  expect(screen.queryByTestId('best-effort')).toBeNull()
})

test('what reasons of drops mean can be read without a mouse', () => {
  const camera = documentedState().cameras[0] as Camera
  const { rerender } = render(<FrameCounts camera={camera} window_s={10} />)
  const [meanings] = screen.getAllByTestId('drop-reasons')
  expect(meanings?.querySelector('summary')?.textContent).toBe('What these reasons mean')
  expect([...meanings?.querySelectorAll('dt') ?? []].map((term) => term.textContent)).toEqual(['sender', 'queue'])
  expect(screen.getByText('they waited too long behind other work')).toBeTruthy()
  rerender(<FrameCounts camera={{ ...camera, counts: { ...camera.counts, dropped: {} } }} window_s={10} />)
  expect(screen.queryByTestId('drop-reasons')).toBeNull()
})
