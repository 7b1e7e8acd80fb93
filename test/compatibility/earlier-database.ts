/** The keys of the installations in `databases`. */
export const MASTER_SECRETS = {
  signingKey: 'invented-signing-key-of-the-test',
  vaultKey: 'invented-vault-key-of-the-test',
}
export const OPERATOR_TOKEN = 'operator-token-of-the-test'
/** The secret that the server shares with the plugin. */
export const PLUGIN_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
export const PASSWORD = 'correct horse battery'

/** The values of fields of every type, from plain to odd. */
export const things = [
  { identifier: 'a', title: 'Äpfel & harbour', price: -1.5, stock: 0, cost: '10.50', active: true, day: '2024-02-29' },
  {
    identifier: 'b',
    title: 'harbour 😀',
    price: 0,
    stock: -3,
    cost: '-0.75',
    active: false,
    moment: '2024-03-01T10:00:00Z',
  },
  { identifier: 'c', title: 'zoo', price: 0.1, stock: 10, cost: '9', clock: '23:59', mail: 'Ada@Acme.test' },
  { identifier: 'd', title: 'Zoo at the harbour', price: 1e21, data: { deep: [1, null] }, link: 'https://acme.test/é' },
  {
    identifier: 'e',
    title: 'x'.repeat(300),
    stock: 9_007_199_254_740_991,
    tags: ['b', 'a'],
    scores: [3, 1],
    code: 'E1',
  },
  { identifier: 'f', notes: 'A harbour in words', price: 5e-324, parent: 'a', picture: '/files/one.png', code: 'F1' },
  { identifier: 'g', title: 'e\u0301', price: -1e-7, cost: '1000000000000000000000.01', day: '1999-12-31' },
]

/** Returns the cursor in the `Link` header of a page. */
export const nextCursor = ({ headers }: { headers: Headers }): string =>
  new URLSearchParams(headers.get('link')!.replace(/^<[^?]*\?|>.*$/g, '')).get('$after')!
