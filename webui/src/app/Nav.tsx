// The links between the pages.

import frame from '../ui/frame.module.css'

import { hashOf, type Route } from './route'
import { TITLES } from './titles'

const PAGES = ['overview', 'scheduler', 'models', 'add', 'settings'] as const

export function Nav({ route }: { route: Route }) {
  const under = route.page === 'camera' ? 'overview' : route.page
  return (
    <nav class={frame.pages} aria-label="Pages">
      {PAGES.map((page) => (
        <a key={page} href={hashOf({ page })} aria-current={under === page ? 'page' : undefined}>
          {TITLES[page]}
        </a>
      ))}
    </nav>
  )
}
