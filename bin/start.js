import './check-node.js';

// First, so that it knows of a parent that ends while the service loads.
await import('../src/when-orphaned.ts');
await import('../src/main.ts');
