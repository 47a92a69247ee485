// @vitest-environment happy-dom
// The page that adds a camera, operated as a person does.

import { act, cleanup, fireEvent, render, screen } from '@testing-library/preact'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { SessionContext, type Session } from '../src/access/session'
import { Add } from '../src/add/Add'
import { bodyOf, NO_FIELDS } from '../src/add/fetched'
import type { Camera } from '../src/api/types'
import type { FrameDispatcher } from '../src/live/frameDispatcher'
import { documentedState } from './documented'

const ANN: Session = { scope: 'admin', name: 'Ann', camera: null, may_be_camera: true, logged_in: true, open_to: 'nobody' }
const ANSWERS: Readonly<Record<string, unknown>> = {
  'v1/addresses': { only_here: false, tls: false, addresses: [] },
  'v1/pairings': { code: 'K7QF-2M9D', camera: 'camera-1', expires_s: 600 },
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('fetch', (address: string) => Promise.resolve(new Response(JSON.stringify(ANSWERS[address]))))
})

afterEach(() => {
  cleanup()
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

const pass = (ms: number) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)))

test('a pairing code is shown for as long as it works, and then another one can be had', async () => {
  const state = { ...documentedState(), cameras: [], sources: [] }
  render(<SessionContext.Provider value={ANN}><Add state={state} dispatcher={{} as FrameDispatcher} /></SessionContext.Provider>)
  expect(screen.getByTestId('needs-code').textContent).toContain('Get a pairing code above first')
  fireEvent.click(screen.getByRole('button', { name: 'Get a pairing code' }))
  await pass(100)
  expect(screen.queryByTestId('needs-code')).toBeNull()
  expect(screen.getByTestId('pairing-code').textContent).toBe('K7QF-2M9D')
  await pass(590_000)
  expect(screen.getByTestId('lines').textContent).toContain('--pair K7QF-2M9D')
  await pass(10_000)
  expect(screen.getByTestId('lines').textContent).not.toContain('--pair')
  expect(screen.getByRole('button', { name: 'Get a pairing code' })).toBeTruthy()
})

test.each([
  ['nobody', 'without one the box does not let it in'],
  ['loopback', 'one on the box’s own machine needs none'],
  ['everybody', 'lets in cameras without one'],
] as const)('what a code is for on a box that is open to %s', (open_to, text) => {
  const state = { ...documentedState(), cameras: [], sources: [] }
  render(<SessionContext.Provider value={{ ...ANN, open_to }}><Add state={state} dispatcher={{} as FrameDispatcher} /></SessionContext.Provider>)
  expect(document.body.textContent).toContain(text)
})

test('the code of a camera that has come is not shown any more, and the next camera gets a name of its own', async () => {
  const [camera] = documentedState().cameras as [Camera]
  const page = (cameras: Camera[]) => <SessionContext.Provider value={ANN}><Add state={{ ...documentedState(), cameras, sources: [] }} dispatcher={{ attach: () => () => {} } as unknown as FrameDispatcher} /></SessionContext.Provider>
  const { rerender } = render(page([]))
  fireEvent.click(screen.getByRole('button', { name: 'Get a pairing code' }))
  await pass(100)
  rerender(page([{ ...camera, id: 'camera-1', connected: true }]))
  expect(screen.queryByTestId('pairing-code')).toBeNull()
  expect(screen.getByTestId('lines').textContent).not.toContain('--pair')
  fireEvent.click(screen.getByRole('button', { name: 'Add another camera' }))
  expect((screen.getByLabelText(/^Name of the new camera/) as HTMLInputElement).value).toBe('camera-2')
  expect(screen.getByRole('button', { name: 'Get a pairing code' })).toBeTruthy()
})

test.each([
  ['everybody', 'http://192.168.1.5:8787/', false],
  ['loopback', 'http://192.168.1.5:8787/', true],
  ['loopback', 'http://127.0.0.1:8787/', false],
] as const)('a line for a box that is open to %s, at %s, needs a code: %s', async (open_to, address, needed) => {
  const state = { ...documentedState(), cameras: [], sources: [] }
  render(<SessionContext.Provider value={{ ...ANN, open_to }}><Add state={state} dispatcher={{} as FrameDispatcher} /></SessionContext.Provider>)
  fireEvent.input(screen.getByLabelText(/^Address at which it reaches this box/), { target: { value: address } })
  await pass(100)
  expect(screen.queryByTestId('needs-code') !== null).toBe(needed)
})

test.each([true, false])('a page opened on the box itself offers the addresses as they are reached (TLS: %s)', async (tls) => {
  const [web, camera] = tls ? ['https', 'wss'] : ['http', 'ws']
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify({ only_here: false, tls, addresses: ['192.168.1.5:8787', '10.0.0.7:8787'] }))))
  vi.spyOn(document, 'baseURI', 'get').mockReturnValue(`${web}://127.0.0.1:8787/`)
  const state = { ...documentedState(), cameras: [], sources: [] }
  const { container } = render(<SessionContext.Provider value={ANN}><Add state={state} dispatcher={{} as FrameDispatcher} /></SessionContext.Provider>)
  await pass(100)
  expect((screen.getByLabelText(/^Address at which it reaches this box/) as HTMLInputElement).value).toBe(`${web}://192.168.1.5:8787/`)
  expect([...container.querySelectorAll('datalist option')].map((option) => option.getAttribute('value'))).toEqual([`${web}://192.168.1.5:8787/`, `${web}://10.0.0.7:8787/`])
  expect(screen.getByTestId('lines').textContent).toContain(`--server ${camera}://192.168.1.5:8787`)
  expect(screen.queryByTestId('needs-https') === null).toBe(tls)
})

test('a form that the box would refuse is not shown', () => {
  const state = { ...documentedState(), cameras: [], sources: [] }
  render(<SessionContext.Provider value={{ ...ANN, scope: 'operator' }}><Add state={state} dispatcher={{} as FrameDispatcher} /></SessionContext.Provider>)
  expect(screen.getByText('Log in with an administrator’s token to add one.')).toBeTruthy()
  expect(screen.queryByLabelText(/^Address of its stream/)).toBeNull()
  expect(screen.getByRole('button', { name: 'Get a pairing code' })).toBeTruthy()
})

test('a rate may have a decimal comma, and what is no number is for the box to refuse', () => {
  expect(bodyOf({ ...NO_FIELDS, url: 'webcam:0', rate_hz: ' 2,5 ' })).toEqual({ url: 'webcam:0', rate_hz: 2.5 })
  expect(bodyOf({ ...NO_FIELDS, url: 'webcam:0', rate_hz: 'many' })).toEqual({ url: 'webcam:0', rate_hz: 'many' })
})

/** A form for a fetched camera, whose questions are answered when the test says so. */
function fetchForm(): { answer: (body: object, status?: number) => Promise<void>; url: HTMLInputElement } {
  let answer: (response: Response) => void = () => {}
  vi.stubGlobal('fetch', (address: string) => (address === 'v1/addresses' ? new Promise(() => {}) : new Promise<Response>((resolve) => (answer = resolve))))
  const state = { ...documentedState(), cameras: [], sources: [] }
  render(<SessionContext.Provider value={ANN}><Add state={state} dispatcher={{} as FrameDispatcher} /></SessionContext.Provider>)
  const url = screen.getByLabelText<HTMLInputElement>(/^Address of its stream/)
  fireEvent.input(url, { target: { value: 'rtsp://one/' } })
  return {
    url,
    async answer(body, status = 200) {
      answer(new Response(JSON.stringify(body), { status }))
      await pass(100)
    },
  }
}

const EACH = <Value,>(value: Value) => ({ slo_ms: value, rate_hz: value, app: value, min_accuracy: value, site: value, pipeline: value, family: value, tracking: value, zones: value, lines: value })
const ADDED = { id: 'camera-1', connected: false, first_seen_ms: null, last_seen_ms: null, requested: { ...EACH(null), min_rate_hz: null, width_px: null, height_px: null, later: [] }, origins: EACH('unknown'), overrides: EACH(null), versions: EACH('0'), in_force: null, state: null, source: null }
const PICTURE = { jpeg: '', codec: 'h264', decoder: 'software', width_px: 640, height_px: 360 }

test('the picture of a source is not shown under another address, nor why it could not be had', async () => {
  vi.stubGlobal('createImageBitmap', () => Promise.reject(new Error('none')))
  const { answer, url } = fetchForm()
  const test = screen.getByRole('button', { name: 'Test' })
  fireEvent.click(test)
  await answer(PICTURE)
  expect(screen.getByTestId('fetch-tested').textContent).toContain('h264')
  for (const [body, status] of [[PICTURE, 200], [{ title: 'Not there', detail: 'connection refused' }, 502]] as const) {
    fireEvent.click(test)
    fireEvent.input(url, { target: { value: `${url.value}more` } })
    await answer(body, status)
    expect(screen.queryByTestId('fetch-tested')).toBeNull()
    expect(screen.queryByTestId('fetch-refusal')).toBeNull()
  }
})

test('what is typed while a camera is added stays', async () => {
  const { answer, url } = fetchForm()
  const add = screen.getByRole('button', { name: 'Add camera-1' })
  fireEvent.click(add)
  fireEvent.input(url, { target: { value: 'rtsp://two/' } })
  await answer(ADDED, 201)
  expect(url.value).toBe('rtsp://two/')
  expect(screen.getByTestId('fetch-said').textContent).toContain('camera-1 is added')
  fireEvent.click(add)
  await answer(ADDED, 201)
  expect(url.value).toBe('')
})
