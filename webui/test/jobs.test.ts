import { expect, test } from 'vitest'

import { FAMILY_NAME, familyNameOf, type Job, latest, running } from '../src/models/jobs'

function job(id: number, kind: Job['kind'], family: string, state: Job['state'] = 'done'): Job {
  return { id, kind, family, state, text: '', share: 1, started_ms: 0, ended_ms: null, remarks: [], problem: null }
}

test('the running job and the last one of a kind are found', () => {
  const jobs = [job(3, 'profile', 'street', 'running'), job(2, 'import', 'gate'), job(1, 'profile', 'gate', 'failed')]
  expect(running(jobs)?.id).toBe(3)
  expect(running(jobs.slice(1))).toBeNull()
  expect(latest(jobs, 'import')?.id).toBe(2)
  expect(latest(jobs, 'profile', 'gate')?.id).toBe(1)
  expect(latest([...jobs].reverse(), 'profile')?.id).toBe(3)
  expect(latest(jobs, 'import', 'street')).toBeNull()
})

test('every file name becomes a name that a family may have', () => {
  expect(familyNameOf('yolo11n.onnx')).toBe('yolo11n')
  expect(familyNameOf('My Model (2).v1.onnx')).toBe('my-model-2-.v1')
  for (const file of ['', '.onnx', '---.onnx', 'Größe.onnx', 'a'.repeat(200), '../../etc/passwd', '模型.onnx', 'x.'])
    expect(familyNameOf(file)).toMatch(FAMILY_NAME)
})

test('names that the box would refuse are told apart', () => {
  for (const name of ['', 'A', '-a', 'a.', 'a b', 'a/b', 'a'.repeat(65)]) expect(name).not.toMatch(FAMILY_NAME)
  for (const name of ['a', '0', 'a-b_c.d', 'a-', 'a'.repeat(64)]) expect(name).toMatch(FAMILY_NAME)
})
