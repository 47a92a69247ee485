// The links between the pages: those that this box has, and that whoever is here may use.

import frame from '../ui/frame.module.css'

import { may, type Scope, useSession } from '../access/session'
import { hashOf, type Page, type Route } from './route'
import { TITLES } from './titles'

const PAGES: readonly { page: Exclude<Page, 'camera'>; scope: Scope }[] = [
  { page: 'overview', scope: 'viewer' },
  { page: 'boxes', scope: 'viewer' },
  { page: 'scheduler', scope: 'viewer' },
  { page: 'models', scope: 'viewer' },
  { page: 'add', scope: 'operator' },
  { page: 'settings', scope: 'operator' },
  { page: 'access', scope: 'admin' },
]

interface NavProps {
  route: Route
  /** Whether there may be other boxes. */
  inFleet: boolean
}

export function Nav({ route, inFleet }: NavProps) {
  const session = useSession()
  const under = route.page === 'camera' ? 'overview' : route.page
  return (
    <nav class={frame.pages} aria-label="Pages">
      {PAGES.filter(({ page, scope }) => may(session, scope) && (inFleet || page !== 'boxes')).map(({ page }) => (
        <a key={page} href={hashOf({ page })} aria-current={under === page ? 'page' : undefined}>
          {TITLES[page]}
        </a>
      ))}
    </nav>
  )
}
