// A browser camera against a box that welcomes, refuses and goes, under fake time.

import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { BrowserCamera, type Status } from '../src/browser-camera/browserCamera'
import type { Pictures } from '../src/browser-camera/link'

const ADVICE = { variant: 'street-256', width_px: 256, height_px: 144, rate_hz: 10, quality: 80, bandwidth_bps: 0, reason: '' }
const WELCOME = { type: 'welcome', box: 'edgebox/1', unacknowledged_max: 2, labels: ['car'], advice: ADVICE }

class FakeWebSocket {
  static readonly OPEN = 1
  static opened: FakeWebSocket[] = []
  onopen: (() => void) | null = null
  onmessage: ((event: { data: unknown }) => void) | null = null
  onclose: (() => void) | null = null
  readyState = FakeWebSocket.OPEN
  bufferedAmount = 0
  closed = false
  readonly sent: Array<string | Uint8Array> = []

  constructor(readonly address: string) {
    FakeWebSocket.opened.push(this)
  }

  send(message: string | Uint8Array): void {
    this.sent.push(message)
  }

  close(): void {
    this.closed = true
  }

  hears(message: unknown): void {
    this.onmessage?.({ data: JSON.stringify(message) })
  }

  /** What was said of this type. */
  said(type: string): Array<Record<string, unknown>> {
    const texts = this.sent.filter((message): message is string => typeof message === 'string')
    return texts.map((text) => JSON.parse(text) as Record<string, unknown>).filter((message) => message['type'] === type)
  }

  get frames(): Uint8Array[] {
    return this.sent.filter((message): message is Uint8Array => typeof message !== 'string')
  }
}

const pictures: Pictures & { held: number; encoded: Array<[string, number]> } = {
  held: 0,
  encoded: [],
  hold() {
    this.held += 1
  },
  encode(which, { width_px }) {
    this.encoded.push([which, width_px])
    return Promise.resolve(new ArrayBuffer(2000))
  },
}

let camera: BrowserCamera
let refused: string[]
let mayConnect: () => Promise<boolean>

function latest(): FakeWebSocket {
  return FakeWebSocket.opened.at(-1) as FakeWebSocket
}

function status(): Status {
  return camera.status()
}

function now_ns(): number {
  return Math.round(performance.now() * 1e6)
}

/** Let a tenth of a second pass and capture a frame at its end. */
async function capture(): Promise<void> {
  await vi.advanceTimersByTimeAsync(100)
  camera.captured(now_ns())
  await vi.advanceTimersByTimeAsync(0)
}

function welcomed(): FakeWebSocket {
  latest().onopen?.()
  latest().hears(WELCOME)
  return latest()
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'] })
  vi.spyOn(Math, 'random').mockReturnValue(0)
  vi.stubGlobal('WebSocket', FakeWebSocket)
  vi.stubGlobal('window', globalThis)
  FakeWebSocket.opened = []
  pictures.held = 0
  pictures.encoded = []
  refused = []
  mayConnect = () => Promise.resolve(true)
  const settings = { name: 'gate', app: 'default', slo_ms: 1000, rate_hz: 10 }
  camera = new BrowserCamera('ws://box/v1/stream', settings, { width: 1280, height: 720 }, pictures, {
    onChange: () => {},
    onResult: () => {},
    onRefused: (message) => refused.push(message),
    mayConnect: () => mayConnect(),
  })
  camera.start()
})

afterEach(() => {
  camera.leave('')
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

test('it introduces itself, and captures nothing before it is welcome', async () => {
  latest().onopen?.()
  await capture()
  expect(latest().said('hello')[0]).toMatchObject({ versions: [1], camera: 'gate', slo_ms: 1000, rate_hz: 10, width_px: 1280, height_px: 720 })
  expect(status().counts.captured).toBe(0)
  expect(status().phase).toBe('connecting')
})

test('at most two frames are on their way; the newest waits, and is released by an ack', async () => {
  const socket = welcomed()
  for (let frame = 0; frame < 4; frame += 1) await capture()
  expect(socket.frames).toHaveLength(2)
  expect(pictures.held).toBe(2)
  socket.hears({ type: 'ack', frame: 1, accepted: true, advice: ADVICE })
  await vi.advanceTimersByTimeAsync(0)
  expect(pictures.encoded.map(([which]) => which)).toEqual(['live', 'live', 'held'])
  expect(pictures.encoded[0]).toEqual(['live', 256])
  expect(status().counts).toMatchObject({ captured: 4, pending: 3, dropped: { sender: 1 } })
  expect(status().skipped).toEqual({ window: 1 })
})

test('it answers for its clock, measures the round trip and reports every second', async () => {
  const socket = welcomed()
  socket.hears({ type: 'ping', id: 5, box_ns: 1 })
  expect(socket.said('pong')).toEqual([{ type: 'pong', id: 5, camera_ns: now_ns() }])
  expect(socket.said('ping')).toEqual([{ type: 'ping', id: 1 }])
  await capture()
  await vi.advanceTimersByTimeAsync(1000)
  expect(socket.said('report').at(-1)).toMatchObject({ captured: 1, sent: 1 })
})

test('a lost connection is tried again; what is captured meanwhile counts as not sent', async () => {
  welcomed().onclose?.()
  expect(status().phase).toBe('waiting')
  await capture()
  expect(status().skipped).toEqual({ offline: 1 })
  await vi.advanceTimersByTimeAsync(500)
  expect(FakeWebSocket.opened).toHaveLength(2)
  welcomed()
  expect(status().phase).toBe('live')
  const [first, second] = FakeWebSocket.opened.map((socket) => socket.said('hello')[0]?.['instance'])
  expect(first).toBe(second)
})

test('a person need not wait for the next try', () => {
  welcomed().onclose?.()
  camera.retryNow()
  camera.retryNow()
  expect(FakeWebSocket.opened).toHaveLength(2)
})

test('a silent box is given up after ten seconds', async () => {
  const socket = welcomed()
  await vi.advanceTimersByTimeAsync(12_000)
  expect(socket.closed).toBe(true)
})

test('a name in use is asked for again for 45 s, then given up', async () => {
  const error = { type: 'error', code: 'camera_in_use', message: 'a camera named gate is connected', fatal: true }
  for (let attempt = 0; attempt < 12 && !refused.length; attempt += 1) {
    latest().onopen?.()
    latest().hears(error)
    await vi.advanceTimersByTimeAsync(15_000)
  }
  expect(refused).toEqual(['a camera named gate is connected'])
  expect(status().phase).toBe('ended')
})

test('a camera that was replaced or told that its hello is wrong does not come back', async () => {
  welcomed().hears({ type: 'error', code: 'replaced', message: 'this camera has connected again', fatal: true })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(refused).toHaveLength(1)
  expect(FakeWebSocket.opened).toHaveLength(1)
})

test('what the box says when it says goodbye is shown', () => {
  welcomed().hears({ type: 'bye', reason: 'its token was revoked, or its login has ended' })
  expect(status().remark).toBe('The box said goodbye: its token was revoked, or its login has ended. Trying again in 1 s.')
  camera.retryNow()
  welcomed().hears({ type: 'bye', reason: 'shutdown' })
  expect(status().remark).toContain('The box is stopping. ')
})

test('a browser that the box does not let in any more stops, and says that it needs a code', async () => {
  let asked = 0
  mayConnect = () => {
    asked += 1
    return Promise.resolve(false)
  }
  welcomed().hears({ type: 'bye', reason: 'its token was revoked, or its login has ended' })
  expect(asked).toBe(0)
  camera.retryNow()
  latest().onclose?.()
  await vi.advanceTimersByTimeAsync(0)
  expect(refused).toEqual(['it is not paired with this box, or no longer, and needs a pairing code'])
  expect(status().phase).toBe('ended')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(FakeWebSocket.opened).toHaveLength(2)
})

test.each([
  ['lets it in', () => Promise.resolve(true)],
  ['does not answer', () => Promise.reject(new Error('no answer'))],
])('a box that %s is tried again', async (_, answer) => {
  mayConnect = answer
  latest().onclose?.()
  await vi.advanceTimersByTimeAsync(0)
  expect([status().phase, refused]).toEqual(['waiting', []])
})

test('an answer that comes after the welcome does not count', async () => {
  let answer: (may: boolean) => void = () => {}
  mayConnect = () => new Promise((resolve) => (answer = resolve))
  latest().onclose?.()
  camera.retryNow()
  welcomed()
  answer(false)
  await vi.advanceTimersByTimeAsync(0)
  expect([status().phase, refused]).toEqual(['live', []])
})

test('a picture that was turned is introduced again at once', () => {
  const before = welcomed()
  camera.resized({ width: 720, height: 1280 })
  expect(before.said('bye')).toHaveLength(1)
  welcomed()
  expect(latest().said('hello')[0]).toMatchObject({ width_px: 720, height_px: 1280 })
})

test('stopping waits for the last answer, reports and says goodbye', async () => {
  const socket = welcomed()
  await capture()
  const finished = camera.finish('it was stopped')
  await vi.advanceTimersByTimeAsync(100)
  expect(socket.said('bye')).toHaveLength(0)
  socket.hears({ type: 'ack', frame: 1, accepted: true, advice: ADVICE })
  socket.hears({ type: 'result', frame: 1, variant: 'street-256', detections: [], advice: ADVICE })
  await vi.advanceTimersByTimeAsync(100)
  await finished
  expect(socket.said('report').at(-1)).toMatchObject({ captured: 1, on_time: 1 })
  expect(socket.said('bye')).toEqual([{ type: 'bye', reason: 'it was stopped' }])
  expect(status().counts).toMatchObject({ captured: 1, on_time: 1, pending: 0 })
})

test('a deadline that was set on the box holds for the frames after it', async () => {
  const socket = welcomed()
  socket.hears({ type: 'advice', advice: ADVICE, slo_ms: 50 })
  await capture()
  await vi.advanceTimersByTimeAsync(80)
  socket.hears({ type: 'result', frame: 1, variant: 'street-256', detections: [], advice: ADVICE })
  expect(status().counts).toMatchObject({ on_time: 0, late: 1 })
})
