// Why something is not possible with the token that the page was opened with.

const WHOSE = { viewer: 'a viewer’s', operator: 'an operator’s', admin: 'an administrator’s' }

/** "Log in with an operator’s token to change them." */
export function LogInHint({ scope, to }: { scope: keyof typeof WHOSE; to: string }) {
  return <span class="muted" data-testid={`${scope}-hint`}>Log in with {WHOSE[scope]} token to {to}.</span>
}
