// The connection's life against a box that comes, goes and hangs, under fake time.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { BoxSocket, type Connection } from '../src/api/socket'
import { documentedUpdate, documentedState } from './documented'

const STATE = JSON.stringify(documentedState())

class FakeWebSocket {
  static readonly OPEN = 1
  static opened: FakeWebSocket[] = []
  onmessage: ((event: { data: unknown }) => void) | null = null
  onclose: (() => void) | null = null
  onopen: (() => void) | null = null
  binaryType = ''
  closed = false
  readyState = FakeWebSocket.OPEN
  readonly sent: string[] = []

  constructor(readonly address: string) {
    FakeWebSocket.opened.push(this)
  }

  send(text: string): void {
    this.sent.push(text)
  }

  close(): void {
    this.closed = true
  }
}

/** The socket the page opened last. */
function latest(): FakeWebSocket {
  return FakeWebSocket.opened.at(-1) as FakeWebSocket
}

const phases: string[] = []
const states: unknown[] = []
const told: number[] = []
const unreadable: unknown[] = []
let wake: () => void = () => {}
let lookAway: (hidden: boolean) => void = () => {}
let socket: BoxSocket

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(Math, 'random').mockReturnValue(0)
  FakeWebSocket.opened = []
  phases.length = 0
  states.length = 0
  told.length = 0
  unreadable.length = 0
  vi.stubGlobal('WebSocket', FakeWebSocket)
  const page = {
    hidden: false,
    addEventListener: (_name: string, changed: () => void) => {
      lookAway = (hidden) => {
        page.hidden = hidden
        changed()
      }
    },
  }
  vi.stubGlobal('document', page)
  vi.stubGlobal('window', {
    setTimeout: (run: () => void, ms: number) => setTimeout(run, ms),
    clearTimeout: (timer: ReturnType<typeof setTimeout>) => clearTimeout(timer),
    addEventListener: (_name: string, run: () => void) => (wake = run),
  })
  socket = new BoxSocket('ws://box/v1/ui', {
    onConnection: (connection: Connection) => phases.push(connection.phase),
    onState: (state) => states.push(state),
    onFrame: () => {},
    onTimeline: (update) => told.push(update.now_ms),
    onUnreadable: (why, version) => unreadable.push([why, version]),
  })
  socket.start()
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

test('the first state makes the page live', () => {
  expect(phases).toEqual(['connecting'])
  latest().onmessage?.({ data: STATE })
  expect(phases.at(-1)).toBe('live')
  expect(states).toHaveLength(1)
})

test('a box that restarts is found again, with longer and longer waits until then', () => {
  latest().onmessage?.({ data: STATE })
  latest().onclose?.()
  expect(phases.at(-1)).toBe('lost')
  for (const wait_ms of [500, 1000, 2000]) {
    const tries = FakeWebSocket.opened.length
    vi.advanceTimersByTime(wait_ms - 1)
    expect(FakeWebSocket.opened).toHaveLength(tries)
    vi.advanceTimersByTime(1)
    expect(FakeWebSocket.opened).toHaveLength(tries + 1)
    latest().onclose?.()
  }
  vi.advanceTimersByTime(4000)
  latest().onmessage?.({ data: STATE })
  expect(phases.at(-1)).toBe('live')

  const tries = FakeWebSocket.opened.length
  latest().onclose?.()
  vi.advanceTimersByTime(500)
  expect(FakeWebSocket.opened, 'a state starts the waits again').toHaveLength(tries + 1)
})

describe('a box that hangs', () => {
  test('is given up after five silent seconds', () => {
    const hung = latest()
    hung.onmessage?.({ data: STATE })
    vi.advanceTimersByTime(4999)
    expect(phases.at(-1)).toBe('live')
    vi.advanceTimersByTime(1)
    expect(phases.at(-1)).toBe('lost')
    expect(hung.closed).toBe(true)
  })

  test('is not heard any more once given up', () => {
    const hung = latest()
    vi.advanceTimersByTime(5500)
    hung.onmessage?.({ data: STATE })
    hung.onclose?.()
    expect(states).toHaveLength(0)
    expect(FakeWebSocket.opened).toHaveLength(2)
  })
})

test('a network that returns is used at once, and only when one is waited for', () => {
  latest().onmessage?.({ data: STATE })
  wake()
  expect(FakeWebSocket.opened).toHaveLength(1)
  latest().onclose?.()
  wake()
  expect(FakeWebSocket.opened).toHaveLength(2)
  vi.advanceTimersByTime(1000)
  expect(FakeWebSocket.opened, 'the timer it was waiting for is off').toHaveLength(2)
})

const NOBODY = '{"type":"watch","cameras":[]}'

test('a page nobody looks at asks for fewer frames, and for the usual ones on return', () => {
  latest().onopen?.()
  socket.watchFrames({ cameras: ['gate-1', 'gate-2'], close: false })
  lookAway(true)
  lookAway(false)
  const [usual, unseen] = ['{"type":"watch","cameras":["gate-1","gate-2"]}', '{"type":"watch","cameras":["gate-1","gate-2"],"max_hz":1}']
  expect(latest().sent).toEqual([NOBODY, usual, unseen, usual])
})

test('a camera that is looked at closely is the only one whose frames come', () => {
  latest().onopen?.()
  socket.watchFrames({ cameras: ['gate-2'], close: true })
  socket.watchFrames({ cameras: [], close: false })
  const close = '{"type":"watch","cameras":["gate-2"],"max_hz":15}'
  expect(latest().sent).toEqual([NOBODY, close, NOBODY])
  socket.watchFrames({ cameras: ['gate-2'], close: true })
  latest().onclose?.()
  wake()
  latest().onopen?.()
  expect(latest().sent).toEqual([close])
  lookAway(true)
  expect(latest().sent.at(-1)).toBe('{"type":"watch","cameras":["gate-2"],"max_hz":1}')
})

test('what was asked for already is not asked for again', () => {
  latest().onopen?.()
  socket.watchFrames({ cameras: ['gate-2'], close: false })
  socket.watchFrames({ cameras: ['gate-2'], close: false })
  expect(latest().sent).toEqual([NOBODY, '{"type":"watch","cameras":["gate-2"]}'])
})

describe('the timeline', () => {
  test('is asked for while its page is open and looked at, at each connection', () => {
    latest().onmessage?.({ data: STATE })
    latest().onopen?.()
    socket.watchTimeline(true)
    lookAway(true)
    lookAway(false)
    socket.watchTimeline(false)
    const watching = '{"type":"watch","cameras":[],"timeline":true}'
    expect(latest().sent).toEqual([NOBODY, watching, '{"type":"watch","cameras":[],"max_hz":1}', watching, NOBODY])
    socket.watchTimeline(true)
    latest().onclose?.()
    vi.advanceTimersByTime(500)
    latest().onopen?.()
    expect(latest().sent).toEqual([watching])
  })

  test('is no state, and no proof that the box is back', () => {
    latest().onmessage?.({ data: JSON.stringify({ ...documentedUpdate(), now_ms: 5 }) })
    expect(told).toEqual([5])
    expect(states).toEqual([])
    expect(phases).toEqual(['connecting'])
  })
})

test('a state that is not understood is told, and proves nothing', () => {
  latest().onmessage?.({ data: '{"type":"state","box":{"version":"9"},"now_ms":1,"cameras":3}' })
  expect(unreadable).toEqual([['state: box.name must be a string', '9']])
  expect(phases).toEqual(['connecting'])
})
