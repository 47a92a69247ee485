// @vitest-environment happy-dom
// Logging in on a box that is open: it allows something without a login, and more with one.

import { cleanup, fireEvent, render, screen } from '@testing-library/preact'
import { afterEach, expect, test } from 'vitest'

import type { Session } from '../src/access/session'
import { App } from '../src/app/App'
import type { Route } from '../src/app/route'
import type { FrameDispatcher } from '../src/live/frameDispatcher'
import { TimelineFeed } from '../src/scheduler/timelineFeed'
import { documentedState } from './documented'

const SESSION: Session = { scope: 'viewer', name: null, camera: null, may_be_camera: true, logged_in: false, open_to: 'loopback' }

function app(route: Route) {
  return <App connection={{ phase: 'live' }} state={documentedState()} dispatcher={{} as FrameDispatcher} feed={new TimelineFeed(() => {})} onRetry={() => {}} route={route} session={SESSION} />
}

afterEach(cleanup)

test('the login opens on request, and leads back', () => {
  render(app({ page: 'access' }))
  expect(screen.getByText(/Log in with an administrator’s token/)).toBeTruthy()
  fireEvent.click(screen.getByTestId('log-in'))
  expect(screen.queryByTestId('log-in')).toBeNull()
  expect(document.activeElement).toBe(screen.getByLabelText('Token'))
  fireEvent.click(screen.getByText('Back'))
  expect(screen.queryByLabelText('Token')).toBeNull()
  expect(screen.getByTestId('log-in')).toBeTruthy()
})

test('another page than the one where it was opened is shown', () => {
  const { rerender } = render(app({ page: 'access' }))
  fireEvent.click(screen.getByTestId('log-in'))
  rerender(app({ page: 'settings' }))
  expect(screen.queryByLabelText('Token')).toBeNull()
})
