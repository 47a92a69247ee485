// @vitest-environment happy-dom
// Pages of a box that refused at first, or was away: they ask again by themselves.

import { act, cleanup, render, screen } from '@testing-library/preact'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { Session } from '../src/access/session'
import { Models } from '../src/models/Models'
import { Settings } from '../src/settings/Settings'
import { documentedState } from './documented'

const STATE = documentedState()
const SESSION: Session = { scope: 'admin', name: 'Ann', camera: null, logged_in: true, open_to: 'nobody' }
const STORAGE = { file: '/data/edgebox.sqlite3', database_bytes: 0, log_bytes: 0, free_bytes: null, rows: {}, last_error: '', lost_rows: 0, waiting_rows: 0 }
const SYSTEM = { edgebox: '1.0', python: '3.11', onnxruntime: null, providers: [], platform: 'Linux', packages: [], storage: STORAGE }
const ANSWERS: Readonly<Record<string, unknown>> = {
  'v1/session': SESSION,
  'v1/models': { default: 'street', quantiles: [0.5], families: [] },
  'v1/jobs': { jobs: [] },
  'v1/config': { keys: [] },
  'v1/system': SYSTEM,
}

let refuses = true
const asked: string[] = []

beforeEach(() => {
  vi.useFakeTimers()
  refuses = true
  asked.length = 0
  vi.stubGlobal('fetch', (address: string) => {
    asked.push(address)
    return Promise.resolve(refuses ? new Response('{"detail": "too busy"}', { status: 503 }) : new Response(JSON.stringify(ANSWERS[address])))
  })
})

afterEach(() => {
  cleanup()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const pass = (ms: number) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)))

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
