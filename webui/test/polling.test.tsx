// @vitest-environment happy-dom
// What is asked again and again, and when that ends.

import { act, cleanup, render, screen } from '@testing-library/preact'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { type Polled, usePolled } from '../src/api/polling'
import type { Answers } from '../src/api/api-types'

const PERIOD_MS = 5_000

let asked: string[]
let polled: Polled<Answers['GET /v1/cameras/{id}/explanation']>

beforeEach(() => {
  vi.useFakeTimers()
  asked = []
  vi.stubGlobal('fetch', (address: string) => {
    asked.push(address)
    return new Promise(() => {})
  })
})

afterEach(() => {
  cleanup()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function Page({ camera }: { camera: string | null }) {
  polled = usePolled('GET /v1/cameras/{id}/explanation', camera === null ? null : { path: { id: camera } }, PERIOD_MS)
  return <p data-testid="answer">{JSON.stringify(polled.answer)}</p>
}

const ANSWER = { from: 'a change' } as unknown as Answers['GET /v1/cameras/{id}/explanation']
const pass = (ms: number) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)))

test('a changed answer is shown at once, and asked for again', async () => {
  render(<Page camera="gate" />)
  act(() => polled.put(ANSWER))
  expect(screen.getByTestId('answer').textContent).toContain('a change')
  expect(asked).toHaveLength(2)
})

test('a change that comes after its page was left starts no new questions', async () => {
  const { unmount } = render(<Page camera="gate" />)
  await pass(0)
  const { put } = polled
  unmount()
  await pass(100) // effects end after the next frame
  put(ANSWER)
  await pass(12 * PERIOD_MS)
  expect(asked).toHaveLength(1)
})

test.each([['another camera', 'yard', 2], ['none', null, 1]] as const)('nor where %s is shown by then', async (_, camera, questions) => {
  const { rerender } = render(<Page camera="gate" />)
  const { put } = polled
  rerender(<Page camera={camera} />)
  act(() => put(ANSWER))
  await pass(PERIOD_MS)
  expect(asked).toHaveLength(questions)
  expect(screen.getByTestId('answer').textContent).toBe('null')
})
