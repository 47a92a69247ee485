// @vitest-environment happy-dom
// What the page says before the first camera.

import { cleanup, render, screen } from '@testing-library/preact'
import { afterEach, expect, test, vi } from 'vitest'

import { type Scope, SessionContext } from '../src/access/session'
import { NoCameras } from '../src/overview/NoCameras'

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

function as(scope: Scope) {
  const session = { scope, name: 'Bob', camera: null, may_be_camera: true, logged_in: true, open_to: 'nobody' } as const
  return render(<SessionContext.Provider value={session}><NoCameras ready expected={0} /></SessionContext.Provider>)
}

test.each([
  ['http://localhost:8787/', /^The box is ready\. .*, on this machine:$/],
  ['http://192.168.1.9:8787/', /^The box is ready\. .*, on any machine that reaches it:$/],
])('at %s it says where its command reaches the box', (address, says) => {
  vi.stubGlobal('location', new URL(address))
  const { container } = as('operator')
  expect(screen.getByText(says)).toBeTruthy()
  expect(container.textContent).toContain(`--server ws://${new URL(address).host} `)
})

test('a viewer, who may not add one, is not told to', () => {
  vi.stubGlobal('location', new URL('http://localhost:8787/'))
  const { container } = as('viewer')
  expect(screen.getByText('Log in with an operator’s token to add one.')).toBeTruthy()
  expect(container.querySelector('a, button')).toBeNull()
})
