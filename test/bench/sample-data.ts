/** What the benchmark is run on: products of eight fields. */
export const productsBlueprint = {
  key: 'products',
  name: 'Products',
  fields: [
    { key: 'title', type: 'string' as const, required: true },
    { key: 'category', type: 'string' as const },
    { key: 'price', type: 'number' as const },
    { key: 'stock', type: 'integer' as const },
    { key: 'active', type: 'boolean' as const },
    { key: 'released', type: 'date' as const },
    { key: 'contact', type: 'email' as const },
    { key: 'notes', type: 'text' as const },
  ],
  permissions: (['create', 'read', 'update', 'delete'] as const).map((operation) => ({
    operation,
    scope: 'user' as const,
    roleBased: ['user'],
  })),
}

/** What creates are also measured on: two fields, and nothing there at first. */
export const notesBlueprint = {
  key: 'notes',
  name: 'Notes',
  fields: [
    { key: 'title', type: 'string' as const },
    { key: 'stars', type: 'integer' as const },
  ],
  permissions: productsBlueprint.permissions,
}

export const note = (n: number) => ({ title: `Note number ${n}`, stars: n % 5 })

const CATEGORY_COUNT = 500

export const category = (n: number) => `category-${n % CATEGORY_COUNT}`

export const product = (n: number) => ({
  title: `Product number ${n}`,
  category: category(n),
  price: ((n * 7919) % 100_003) / 100,
  stock: n % 500,
  active: n % 3 > 0,
  released: `20${10 + (n % 15)}-0${1 + (n % 9)}-1${n % 10}`,
  contact: `maker${n % 5_000}@example.com`,
  notes: `Notes on product ${n}, of which there is always something to be told in a sentence or two.`,
})
