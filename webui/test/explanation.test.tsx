// @vitest-environment happy-dom
// The table of what the planner considers: its figures and its verdicts must agree.

import { cleanup, render, screen } from '@testing-library/preact'
import { afterEach, expect, test, vi } from 'vitest'

import { Explanation, type Option } from '../src/camera/Explanation'

const TOO_LONG: Option = {
  variant: 'street-288', accuracy: 0.48, accuracy_assumed: false, accuracy_report: null, width_px: 288, height_px: 162, frame_bytes: 10_000, needed_bps: null, needed_ms: 762, left_ms: -452,
  verdict: 'infeasible', why: 'even the best link would not do: inference alone takes 1,214 ms too long', limit: null, remedies: [],
}

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

test('a time left below zero is shown as it is: what is needed and what is left make what is missing', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify({ camera: 'gate', bandwidth_bps: 135_000, options: [TOO_LONG] }))))
  render(<Explanation camera="gate" connected fetched={false} />)
  expect((await screen.findByText('762 ms')).nextElementSibling?.textContent).toBe('-452\u202fms')
  expect(screen.getByText('288 × 162')).toBeTruthy()
  expect(screen.getByText(/in the camera’s own shape, no larger than the model’s input/), 'the model has 288 × 192').toBeTruthy()
})

test.each([
  ['as it is', {}, '0.48'],
  ['as not measured where it was assumed', { accuracy_assumed: true }, 'not measured'],
  ['with its measure', { accuracy_report: { kind: 'F1', standard_error: 0.01, source: 'yard', pictures: 40, measured_at_ms: 0, details: {} } }, '0.48 F1'],
] as const)('an accuracy is shown %s', async (_, known, text) => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify({ camera: 'gate', bandwidth_bps: 135_000, options: [{ ...TOO_LONG, ...known }] }))))
  const { container } = render(<Explanation camera="gate" connected fetched={false} />)
  await screen.findByText('762 ms')
  expect(container.querySelector('tbody td')?.textContent).toBe(text)
})
