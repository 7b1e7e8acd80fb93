// engine: sqlite
import { expect, spyOn, test } from 'bun:test'
import { enableJitUnderLoad, noteRequest } from '../../src/core/jit-policy'

test('a server enables the JIT compilers once, after CPU time under load', async () => {
  const policy = spyOn(Bun.unsafe, 'setJITPolicy').mockImplementation(() => {})
  enableJitUnderLoad()
  expect(policy).not.toHaveBeenCalled()
  while (!policy.mock.calls.length) {
    for (let n = 0; n < 1_000_000; n++) Math.sqrt(n)
    await Bun.sleep(1)
  }
  expect(policy.mock.calls).toEqual([[1]])
  policy.mockRestore()
})

test('a server enables the JIT compilers after a hundred requests', () => {
  const policy = spyOn(Bun.unsafe, 'setJITPolicy').mockImplementation(() => {})
  for (let n = 0; n < 1_000; n++) noteRequest()
  expect(policy.mock.calls).toEqual([[1]])
  policy.mockRestore()
})
