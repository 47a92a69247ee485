// The links between the pages.

import frame from './frame.module.css'

import { hashOf, type Route } from '../route'
import { TITLES } from '../titles'

const PAGES = ['overview', 'scheduler', 'models', 'add', 'settings'] as const

export function Nav({ route }: { route: Route }) {
  const under = route.place === 'camera' ? 'overview' : route.place
  return (
    <nav class={frame.pages} aria-label="Pages">
      {PAGES.map((place) => (
        <a key={place} href={hashOf({ place })} aria-current={under === place ? 'page' : undefined}>
          {TITLES[place]}
        </a>
      ))}
    </nav>
  )
}
