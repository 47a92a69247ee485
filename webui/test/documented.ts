// The documents that docs/reference/http-api.md shows, as the page reads them: the two must agree.

import apiPage from '../../docs/reference/http-api.md?raw'
import { parseMessage } from '../src/api/messages'
import type { TimelineUpdate } from '../src/scheduler/timeline'
import type { BoxState } from '../src/api/types'

/** The text of the first example of that type. */
function example(type: string): string {
  const block = [...apiPage.matchAll(/```json\n([\s\S]*?)```/g)].find(([, text]) => text?.includes(`"type": "${type}"`))
  return block?.[1] ?? ''
}

export function documentedState(): BoxState {
  const message = parseMessage(example('state'))
  if (message?.kind !== 'state') throw new Error(`docs/reference/http-api.md shows no state document: ${JSON.stringify(message)}`)
  return message.state
}

export function documentedUpdate(): TimelineUpdate {
  const message = parseMessage(example('timeline'))
  if (message?.kind !== 'timeline') throw new Error(`docs/reference/http-api.md shows no timeline: ${JSON.stringify(message)}`)
  return message.update
}
