// @vitest-environment happy-dom
// What the page says before the first camera.

import { cleanup, render, screen } from '@testing-library/preact'
import { afterEach, expect, test, vi } from 'vitest'

import { NoCameras } from '../src/overview/NoCameras'

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

test.each([
  ['http://localhost:8787/', /^The box is ready\. .*, on this machine:$/],
  ['http://192.168.1.9:8787/', /^The box is ready\. .*, on any machine that reaches it:$/],
])('at %s it says where its command reaches the box', (address, says) => {
  vi.stubGlobal('location', new URL(address))
  const { container } = render(<NoCameras ready expected={0} />)
  expect(screen.getByText(says)).toBeTruthy()
  expect(container.textContent).toContain(`--server ws://${new URL(address).host} `)
})
