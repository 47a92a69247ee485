// Why measuring and importing are not possible from here.

export function AdminHint() {
  return <span class="muted" data-testid="admin-hint">Log in with an administrator’s token to measure and import.</span>
}
