// The links between the pages: those that whoever is here may use.

import frame from '../ui/frame.module.css'

import { may, type Scope, useSession } from '../access/session'
import { hashOf, type Page, type Route } from './route'
import { TITLES } from './titles'

const PAGES: readonly { page: Exclude<Page, 'camera'>; scope: Scope }[] = [
  { page: 'overview', scope: 'viewer' },
  { page: 'scheduler', scope: 'viewer' },
  { page: 'models', scope: 'viewer' },
  { page: 'add', scope: 'operator' },
  { page: 'settings', scope: 'operator' },
  { page: 'access', scope: 'admin' },
]

export function Nav({ route }: { route: Route }) {
  const session = useSession()
  const under = route.page === 'camera' ? 'overview' : route.page
  return (
    <nav class={frame.pages} aria-label="Pages">
      {PAGES.filter(({ scope }) => may(session, scope)).map(({ page }) => (
        <a key={page} href={hashOf({ page })} aria-current={under === page ? 'page' : undefined}>
          {TITLES[page]}
        </a>
      ))}
    </nav>
  )
}
