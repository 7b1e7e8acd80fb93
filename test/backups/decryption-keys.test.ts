import { expect, spyOn, test } from 'bun:test'
import { Decrypter } from 'age-encryption'
import { createDecryption, createEncryption } from '../../src/backups/encryption'
import { errorOf } from '../rejections'

const toStream = (text: string) => new Blob([text]).stream()

test('decryption derives a key once for a passphrase and its key file, and again for another passphrase', async () => {
  const encryption = (await createEncryption('correct horse', []))!
  const content = await encryption.encrypt(toStream('a tenant'))
  const stored = await new Response(content).bytes()
  const derivations = spyOn(Decrypter.prototype, 'decrypt')
  // A file of keys is the only content that is decrypted as text.
  const countDerivations = () => derivations.mock.calls.filter((args: unknown[]) => args[1] === 'text').length
  const readKeyFiles = async () => [encryption.keyFile!]
  const secrets = { passphrase: 'correct horse' }
  for (let n = 0; n < 3; n++) {
    const decrypt = await createDecryption(secrets, readKeyFiles)
    expect(await new Response(await decrypt(new Blob([stored]).stream())).text()).toBe('a tenant')
  }
  expect(countDerivations()).toBe(1)
  const wrong = { passphrase: 'battery staple' }
  for (let n = 0; n < 2; n++)
    expect(await errorOf(createDecryption(wrong, readKeyFiles))).toMatchObject({ code: 'WRONG_BACKUP_KEY' })
  await createDecryption({ ...secrets }, readKeyFiles)
  expect(countDerivations()).toBe(3)
  derivations.mockRestore()
})
