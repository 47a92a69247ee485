// @vitest-environment happy-dom
// Pages of a box that refused at first, or was away: they ask again by themselves.

import { act, cleanup, render, screen } from '@testing-library/preact'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { Session } from '../src/access/session'
import { Camera } from '../src/camera/Camera'
import type { FrameDispatcher } from '../src/live/frameDispatcher'
import { Models } from '../src/models/Models'
import { Settings } from '../src/settings/Settings'
import { documentedState } from './documented'

const STATE = documentedState()
const SESSION: Session = { scope: 'admin', name: 'Ann', camera: null, may_be_camera: true, logged_in: true, open_to: 'nobody' }
const STORAGE = { file: '/data/edgebox.sqlite3', database_bytes: 0, log_bytes: 0, free_bytes: null, rows: {}, last_error: '', lost_rows: 0, waiting_rows: 0 }
const SYSTEM = { edgebox: '1.0', python: '3.11', onnxruntime: null, providers: [], platform: 'Linux', packages: [], storage: STORAGE }
const ANSWERS: Readonly<Record<string, unknown>> = {
  'v1/session': SESSION,
  'v1/models': { default: 'street', quantiles: [0.5], families: [] },
  'v1/config': { keys: [] },
  'v1/system': SYSTEM,
}

let refuses = true
let jobs: unknown[] = []
const asked: string[] = []

beforeEach(() => {
  vi.useFakeTimers()
  refuses = true
  jobs = []
  asked.length = 0
  vi.stubGlobal('fetch', (address: string) => {
    asked.push(address)
    return Promise.resolve(refuses ? new Response('{"detail": "too busy"}', { status: 503 }) : new Response(JSON.stringify(address === 'v1/jobs' ? { jobs } : ANSWERS[address])))
  })
})

afterEach(() => {
  cleanup()
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

/** Let time pass, with the page drawn in between. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 100) await act(async () => void (await vi.advanceTimersByTimeAsync(Math.min(100, ms - passed))))
}

test('the models are shown when the box answers after all', async () => {
  render(<Models state={STATE} />)
  await pass(100)
  expect(screen.getByRole('alert').textContent).toBe('The list of models cannot be shown: too busy')
  refuses = false
  await pass(5_000)
  expect(screen.queryByRole('alert')).toBeNull()
  expect(screen.getByRole('heading', { name: 'Import a model' })).toBeTruthy()
})

test('the settings are shown when the box answers after all, and follow a restart with others', async () => {
  render(<Settings state={STATE} />)
  await pass(100)
  expect(screen.getByRole('alert').textContent).toBe('The settings cannot be shown: too busy')
  refuses = false
  await pass(5_000)
  expect(screen.queryByRole('alert')).toBeNull()
  expect(screen.getByRole('heading', { name: 'Versions' })).toBeTruthy()
  asked.length = 0
  await pass(70_000)
  expect(asked).toContain('v1/config')
})

test('a job is followed often while it runs, and never while nobody looks', async () => {
  refuses = false
  const job = { id: 1, kind: 'profile', family: 'street', state: 'running', text: 'measuring', share: 0.5, started_ms: 1, ended_ms: null, remarks: [], problem: null }
  const questions = () => asked.filter((address) => address === 'v1/jobs').length
  jobs = [job]
  render(<Models state={STATE} />)
  await pass(2_000)
  expect(questions()).toBeGreaterThanOrEqual(4)
  jobs = [{ ...job, state: 'done' }]
  await pass(1_000)
  asked.length = 0
  await pass(8_000)
  expect(questions()).toBe(2)
  vi.spyOn(document, 'hidden', 'get').mockReturnValue(true)
  document.dispatchEvent(new Event('visibilitychange'))
  asked.length = 0
  await pass(20_000)
  expect(asked).toEqual([])
})

test('a camera of which the box says nothing has a reason', async () => {
  const quiet = { follow: () => () => {}, attach: () => () => {} } as unknown as FrameDispatcher
  render(<Camera state={{ ...STATE, cameras: [] }} dispatcher={quiet} camera="gate-9" range={undefined} />)
  await pass(100)
  expect(screen.getByRole('alert').textContent).toBe('What the box knows of it cannot be shown: too busy')
})

class FakeWebSocket {
  static readonly OPEN = 1
  static latest: FakeWebSocket
  readyState = 1
  onmessage: ((event: { data: unknown }) => void) | null = null
  onclose: (() => void) | null = null

  constructor() {
    FakeWebSocket.latest = this
  }

  send(): void {}
  close(): void {}
}

test('who uses the page is asked again when the box is there, and after each loss', async () => {
  class Observer {
    observe(): void {}
    unobserve(): void {}
    disconnect(): void {}
  }
  vi.stubGlobal('WebSocket', FakeWebSocket)
  vi.stubGlobal('IntersectionObserver', Observer)
  vi.stubGlobal('ResizeObserver', Observer)
  vi.spyOn(console, 'info').mockImplementation(() => {})
  document.body.innerHTML = '<div id="app"></div>'
  await import('../src/main')
  await pass(100)
  expect(screen.queryByRole('link', { name: 'Scheduler' })).toBeNull()

  refuses = false
  FakeWebSocket.latest.onmessage?.({ data: JSON.stringify({ ...STATE, cameras: [] }) })
  await pass(100)
  expect(screen.getByRole('link', { name: 'Scheduler' })).toBeTruthy()
  FakeWebSocket.latest.onmessage?.({ data: JSON.stringify({ ...STATE, cameras: [] }) })
  await pass(100)
  expect(asked.filter((address) => address === 'v1/session')).toHaveLength(2)

  FakeWebSocket.latest.onclose?.()
  await pass(1_000)
  FakeWebSocket.latest.onmessage?.({ data: JSON.stringify({ ...STATE, cameras: [] }) })
  await pass(100)
  expect(asked.filter((address) => address === 'v1/session')).toHaveLength(3)
})
