-- A dashboard about the two example tables, as it was before anybody thought of privacy:
--   gris plan workload examples/dashboard.sql --policy examples/policy.yaml

-- Most discussed articles
SELECT article_id, COUNT(DISTINCT member_id) AS readers FROM cofacts_feedback
GROUP BY article_id ORDER BY readers DESC LIMIT 20;

-- Most discussed articles this year
SELECT article_id, COUNT(DISTINCT member_id) AS readers FROM cofacts_feedback
WHERE day >= '2019-01-01' GROUP BY article_id ORDER BY readers DESC LIMIT 10;

-- Readers
SELECT COUNT(DISTINCT member_id) FROM cofacts_feedback;

-- Readers by program
SELECT app, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY app;

-- Readers by program, in the panel beside it
SELECT app AS "Program", COUNT(DISTINCT member_id) AS "Readers" FROM cofacts_feedback GROUP BY 1;

-- Readers by month of joining
SELECT cohort, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY cohort;

-- Opinions
SELECT score, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY score;

-- Readers by day
SELECT day, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY day;

-- Busiest days
SELECT day, COUNT(DISTINCT member_id) AS readers FROM cofacts_feedback GROUP BY day ORDER BY readers DESC LIMIT 7;

-- Most active readers
SELECT member_id, COUNT(*) FROM cofacts_feedback GROUP BY member_id ORDER BY 2 DESC LIMIT 10;

-- Mean opinion
SELECT article_id, AVG(score) FROM cofacts_feedback GROUP BY article_id;

-- Opinions of one reader
SELECT score FROM cofacts_feedback WHERE member_id = '2603d597cbca286b';

-- Best sold products
SELECT stock_code, COUNT(DISTINCT member_id) AS customers FROM online_retail
GROUP BY stock_code ORDER BY customers DESC LIMIT 10;

-- Customers by country
SELECT country, COUNT(DISTINCT member_id) AS customers FROM online_retail
GROUP BY country ORDER BY customers DESC LIMIT 5;

-- Purchases in Germany
SELECT COUNT(*) FROM online_retail WHERE country = 'Germany';

-- Products of one day
SELECT stock_code, COUNT(DISTINCT member_id) AS customers FROM online_retail
WHERE day = DATE '2011-11-28' GROUP BY stock_code ORDER BY customers DESC LIMIT 10;

-- Units sold
SELECT stock_code, SUM(quantity) AS units FROM online_retail GROUP BY stock_code ORDER BY units DESC LIMIT 10;

-- Customers who buy again
SELECT member_id, COUNT(DISTINCT day) FROM online_retail GROUP BY member_id HAVING COUNT(DISTINCT day) > 1
