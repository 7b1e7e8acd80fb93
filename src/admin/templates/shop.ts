import { IconShoppingBag } from '@tabler/icons-react'
import { daysBefore, managedBy, pick, readableByGuests, type Template } from './template'

const STATES = ['paid', 'sent', 'new', 'sent', 'returned'] as const
const CITIES = ['Lisbon', 'Oslo', 'Graz', 'Lyon', 'Cork', 'Turku'] as const
const CUSTOMERS = ['Ines Rocha', 'Olav Dahl', 'Mara Huber', 'Luc Perrin', 'Aoife Byrne', 'Eino Salo'] as const
const ORDER_COUNT = 48

const PRODUCTS = [
  ['linen-apron', 'Linen apron', 'kitchen', '34.00', 41],
  ['oak-board', 'Oak cutting board', 'kitchen', '52.50', 18],
  ['stoneware-mug', 'Stoneware mug', 'kitchen', '19.90', 120],
  ['wool-blanket', 'Wool blanket', 'living', '129.00', 7],
  ['beeswax-candle', 'Beeswax candle', 'living', '14.50', 86],
  ['desk-lamp', 'Brass desk lamp', 'office', '89.00', 12],
  ['paper-notebook', 'Paper notebook', 'office', '9.80', 240],
  ['felt-sleeve', 'Felt laptop sleeve', 'office', '45.00', 3],
] as const

/** Products that guests see, customers, and their orders. */
export const shop: Template = {
  key: 'shop',
  name: 'Shop',
  description: 'Products that everybody sees, customers, and their orders.',
  icon: IconShoppingBag,
  blueprints: [
    {
      ...{ key: 'products', name: 'Products', description: 'What the shop sells.' },
      fields: [
        { key: 'name', type: 'string', required: true, max: 120 },
        { key: 'category', type: 'string', enum: ['kitchen', 'living', 'office'] },
        { key: 'price', type: 'decimal', required: true, min: 0 },
        { key: 'stock', type: 'integer', min: 0, default: 0 },
        { key: 'description', type: 'text' },
      ],
      permissions: [readableByGuests, ...managedBy('seller')],
    },
    {
      ...{ key: 'customers', name: 'Customers', description: 'Who buys.' },
      fields: [
        { key: 'name', type: 'string', required: true },
        { key: 'email', type: 'email', required: true, unique: true },
        { key: 'city', type: 'string' },
      ],
      permissions: managedBy('seller'),
    },
    {
      ...{ key: 'orders', name: 'Orders', description: 'What was bought, and where it is.' },
      fields: [
        { key: 'customer', type: 'relation', target: 'customers', required: true, onDelete: 'restrict' },
        { key: 'product', type: 'relation', target: 'products', required: true, onDelete: 'restrict' },
        { key: 'quantity', type: 'integer', required: true, min: 1, default: 1 },
        { key: 'total', type: 'decimal', required: true },
        { key: 'state', type: 'string', enum: ['new', 'paid', 'sent', 'returned'], default: 'new' },
        { key: 'placed', type: 'datetime', required: true },
      ],
      permissions: [...managedBy('seller'), { operation: 'read', roleBased: ['*'] }],
    },
  ],
  makeEntities: (now) => ({
    products: PRODUCTS.map(([identifier, name, category, price, stock]) => ({
      ...{ identifier, name, category, price, stock },
      description: `${name}, made to last.`,
    })),
    customers: CUSTOMERS.map((name, n) => {
      const identifier = name.toLowerCase().replaceAll(' ', '-')
      return { identifier, name, email: `${identifier}@example.com`, city: pick(CITIES, n) }
    }),
    orders: Array.from({ length: ORDER_COUNT }, (_, n) => {
      const [product, , , price] = pick(PRODUCTS, n * 5)
      const quantity = 1 + (n % 3)
      return {
        identifier: `order-${1001 + n}`,
        customer: pick(CUSTOMERS, n * 7)
          .toLowerCase()
          .replaceAll(' ', '-'),
        ...{ product, quantity, total: (Number(price) * quantity).toFixed(2), state: pick(STATES, n) },
        placed: daysBefore(now, ORDER_COUNT * 3 - n * 3 + (n % 2)),
      }
    }),
  }),
  charts: [
    { title: 'Sales by month', blueprint: 'orders', kind: 'bar', sum: 'total', groupBy: 'placed', interval: 'month' },
    { title: 'Orders by state', blueprint: 'orders', kind: 'pie', groupBy: 'state' },
  ],
}
