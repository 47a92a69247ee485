// The links between the pages.

import frame from './frame.module.css'

import { hashOf, type Route } from '../route'

const PLACES: ReadonlyArray<{ route: Route; name: string }> = [
  { route: { place: 'overview' }, name: 'Cameras' },
  { route: { place: 'scheduler' }, name: 'Scheduler' },
  { route: { place: 'models' }, name: 'Models' },
  { route: { place: 'add' }, name: 'Add a camera' },
  { route: { place: 'settings' }, name: 'Settings' },
]

export function Nav({ route }: { route: Route }) {
  const under = route.place === 'camera' ? 'overview' : route.place
  return (
    <nav class={frame.pages} aria-label="Pages">
      {PLACES.map(({ route: to, name }) => (
        <a key={to.place} href={hashOf(to)} aria-current={under === to.place ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  )
}
