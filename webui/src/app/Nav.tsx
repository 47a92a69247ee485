// The links between the pages: those that this box has, and that whoever is here may use.

import frame from '../ui/frame.module.css'

import { may, useSession } from '../access/session'
import { hashOf, type Page, type Route } from './route'
import { SCOPES } from './scopes'
import { TITLES } from './titles'

const PAGES: readonly Exclude<Page, 'camera'>[] = ['overview', 'boxes', 'scheduler', 'models', 'add', 'settings', 'access']

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
      {PAGES.filter((page) => may(session, SCOPES[page]) && (inFleet || page !== 'boxes')).map((page) => (
        <a key={page} href={hashOf({ page })} aria-current={under === page ? 'page' : undefined}>
          {TITLES[page]}
        </a>
      ))}
    </nav>
  )
}
