// Which page the address names. After the #, so that the page works under any path of any proxy.

/** The pages whose address is their name. */
const NAMED = ['scheduler', 'models', 'add', 'settings'] as const

export type Place = 'overview' | 'camera' | (typeof NAMED)[number]

export interface Route {
  place: Place
  /** Which camera, where the place is one camera's. */
  camera?: string
  /** How far back its charts look, where that is said. */
  range?: string
}

/** Read an address's part after the #; what names no page is the overview. */
export function routeOf(hash: string): Route {
  const [path = '', query] = hash.replace(/^#\/?/, '').split('?', 2)
  const [place, rest] = path.split('/', 2)
  if (place === 'cameras' && rest) {
    const range = new URLSearchParams(query).get('range')
    return { place: 'camera', camera: decoded(rest), ...(range && { range }) }
  }
  const named = NAMED.find((each) => each === place)
  if (named) return { place: named }
  return { place: 'overview' }
}

/** Write the part of an address after the #. */
export function hashOf(route: Route): string {
  if (route.place === 'camera') {
    const query = route.range ? `?${new URLSearchParams({ range: route.range })}` : ''
    return `#/cameras/${encodeURIComponent(route.camera ?? '')}${query}`
  }
  return route.place === 'overview' ? '#/' : `#/${route.place}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
